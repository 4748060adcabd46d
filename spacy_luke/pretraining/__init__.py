"""From articles to a pretrained LUKE, in stages that can be killed and resumed without loss.

``articles``, ``entities`` and ``shards`` prepare the data, ``pretrain`` trains. All use ``stage``,
``stage_lock``, ``manifest`` and ``disk``.
"""
