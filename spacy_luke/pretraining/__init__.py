"""From articles to a pretrained LUKE: stages that are killed and started again without loss.

``articles``, ``entities`` and ``shards`` prepare, ``pretrain`` trains; ``stage`` is what they
share, with ``claim``, ``manifest`` and ``disk``.
"""
