"""Shared by all tests: where real data lies, and tiny checkpoints in published layouts."""

import gc
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from spacy.language import Language

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny networks: threads cost more than they give

LANGUAGE = "xx"
"""Of test pipelines whose language does not matter: to make English's tokenizer, with its many
exceptions, takes four times as long, and many tests make one."""

SENTENCES = [
    "Tokyo is the capital of Japan, and its largest city.",
    "Ada Lovelace was born in London and worked with Charles Babbage.",
    "The University of Tokyo was founded in 1877 by the Meiji government.",
    "In 2020 the United Nations met in New York City; France and Germany signed.",
    "Beyoncé sang in Paris, but the band didn't play their best songs.",
    "She said: 'We aren't going to Kyoto.' He disagreed, of course!",
]
TITLES = [
    "Tokyo", "Japan", "Ada Lovelace", "London", "Charles Babbage", "University of Tokyo",
    "Meiji era", "United Nations", "New York City", "France", "Germany", "Beyoncé", "Paris",
    "Kyoto", "Capital city", "Band (music)", "1877", "2020", "Government",
]  # fmt: skip
ENTITY_SPECIALS = {
    "luke": ["[PAD]", "[UNK]", "[MASK]", *TITLES, "[MASK2]"],
    "lite": ["[MASK]", "[UNK]", "[PAD]", "[MASK2]"],
}
# As mLUKE names them: a language before each title, and several names for an entity.
MULTILINGUAL = {
    **{name: i for i, name in enumerate(["[PAD]", "[UNK]", "[MASK]", "[MASK2]"])},
    **{f"en:{title}": i for i, title in enumerate(TITLES, 4)},
    "ja:東京": 4,
    "ja:日本": 5,
    "de:Japan": 5,
}
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 130,
}

CheckpointMaker = Callable[..., Path]


def pytest_collection_finish() -> None:
    """What has been imported and collected stays, and need not be looked through for garbage,
    thousands of times."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run tests that take minutes")


def fix_random() -> None:
    """Random weights are those of one fixture or test, whatever ran before it in this process.

    So a test that passes passes in any order and on any number of workers.
    """
    from thinc.api import fix_random_seed  # imports torch, which reads the environment above

    fix_random_seed(0)


@pytest.fixture
def bf16(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Mixed precision is bf16 on any machine, also on one that only emulates it."""
    from spacy_luke.model import precision

    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    precision.uses_bf16.cache_clear()
    yield
    precision.uses_bf16.cache_clear()


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    fix_random()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    fix_random()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes minutes; run with --slow"))


@cache
def blank(lang: str) -> "Language":
    """A pipeline without components, for tests that only tokenize. It is made once: the exceptions
    of a tokenizer take a tenth of a second. Not for tests that change it."""
    import spacy

    return spacy.blank(lang)


DATA = Path(os.environ.get("SPACY_LUKE_DATA") or Path(__file__).parents[2] / "shared" / "data")
"""The folder of real corpora."""


def require_data(path: Path) -> Path:
    """A file or folder of the real corpora; skips the test without it."""
    if not path.exists():
        name = path.relative_to(DATA) if path != DATA else "the folder of public corpora"
        pytest.skip(
            f"{name} is not there: public corpora are not part of the project. To run this test, "
            "set SPACY_LUKE_DATA to a folder that contains them (docs/corpora.md)"
        )
    return path


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora; tests that need it skip where it is absent."""
    return require_data(DATA)


@pytest.fixture(scope="session")
def make_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> CheckpointMaker:
    """Writes a tiny checkpoint with random weights, in a new directory, and returns its path.

    Called as ``make_checkpoint(kind, model=None, **config)``. kind: ``luke``, ``lite``, ``mluke``,
    ``luke-japanese``, ``bert-luke``, or the plain ``bert``, ``roberta`` or ``xlm-roberta``. model:
    the ``transformers`` class to save, by default the bare encoder; or
    ``LukeForEntityDisambiguation``, which the official repository publishes. Further settings go to
    ``config.json``.
    """

    def make(kind: str, model: str | None = None, **settings: Any) -> Path:
        path = tmp_path_factory.mktemp(kind)
        write_checkpoint(path, kind, model, **settings)
        return path

    return make


@pytest.fixture(scope="session")
def luke_dir(make_checkpoint: CheckpointMaker) -> Path:
    """A LUKE on byte-level BPE: [PAD]=0, [UNK]=1, [MASK]=2, then titles, [MASK2] last."""
    return make_checkpoint("luke")


@pytest.fixture(scope="session")
def lite_dir(make_checkpoint: CheckpointMaker) -> Path:
    """A LUKE with special entities only: [MASK]=0, [UNK]=1, [PAD]=2, [MASK2]=3."""
    return make_checkpoint("lite")


@pytest.fixture(scope="session")
def bert_dir(make_checkpoint: CheckpointMaker) -> Path:
    """A plain uncased BERT."""
    return make_checkpoint("bert")


@pytest.fixture(scope="session")
def roberta_dir(make_checkpoint: CheckpointMaker) -> Path:
    """A plain RoBERTa."""
    return make_checkpoint("roberta")


@pytest.fixture(scope="session")
def xlmr_dir(make_checkpoint: CheckpointMaker) -> Path:
    """A plain XLM-RoBERTa, whose Unigram tokenizer is in ``tokenizer.json``."""
    return make_checkpoint("xlm-roberta")


def write_checkpoint(path: Path, kind: str, model: str | None, **settings: Any) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    n_pieces = TOKENIZERS.get(kind, write_bpe)(path)
    values = {**SIZES, "vocab_size": n_pieces}
    if "bert" not in kind or "roberta" in kind:
        values.update(type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
    if kind not in PLAIN:
        names = ENTITY_SPECIALS.get(kind, ENTITY_SPECIALS["luke"])
        vocab = MULTILINGUAL if kind == "mluke" else {name: i for i, name in enumerate(names)}
        write_json(path / "entity_vocab.json", vocab)
        write_json(path / "added_tokens.json", {"<ent>": n_pieces, "<ent2>": n_pieces + 1})
        n_entities = max(vocab.values()) + 1
        values.update(vocab_size=n_pieces + 2, entity_vocab_size=n_entities, entity_emb_size=16)
        base = {"mluke": "xlm-roberta-base", "bert-luke": "bert-base-uncased"}
        values["bert_model_name"] = base.get(kind, "roberta-base")
        values["use_entity_aware_attention"] = kind != "mluke"
        kind = "luke"
    name = {"luke": "Luke", "bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}[kind]
    config = getattr(transformers, f"{name}Config")(**{**values, **settings})
    disambiguates = model == "LukeForEntityDisambiguation"
    if disambiguates:
        model = "LukeForMaskedLM"
    torch.manual_seed(0)
    network = getattr(transformers, model or f"{name}Model")(config)
    for parameter in network.parameters():  # fresh ones hardly attend and have zero biases
        parameter.data.add_(torch.randn_like(parameter) * 0.15)
    if model == "LukeForMaskedLM":  # as in all published files; transformers 5 does not tie it
        table = network.luke.embeddings.word_embeddings.weight
        network.lm_head.decoder.weight.data.copy_(table.data)
    network.save_pretrained(path)
    if disambiguates:
        make_disambiguation(path)


def make_disambiguation(path: Path) -> None:
    """Give a masked LM the tensors, and the files, of a published disambiguation model."""
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(path / "model.safetensors")
    tensors = {name: x for name, x in tensors.items() if not name.startswith("lm_head.")}
    table = tensors["luke.entity_embeddings.entity_embeddings.weight"]
    tensors["luke.entity_embeddings.mask_embedding"] = torch.randn(table.shape[1]) * 0.15
    tensors["entity_predictions.bias"] = torch.randn(len(table))
    tensors["luke.embeddings.position_ids"] = torch.arange(SIZES["max_position_embeddings"])[None]
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    write_json(path / "config.json", {**config, "architectures": ["LukeForEntityDisambiguation"]})
    file = path / "entity_vocab.json"
    rows: dict[int, list[list[str]]] = {}
    for name, row in json.loads(file.read_text(encoding="utf8")).items():
        language, colon, title = name.partition(":")
        rows.setdefault(row, []).append([title, language] if colon else [name, "en"])
    lines = [json.dumps({"id": row, "entities": x, "count": 1}) for row, x in rows.items()]
    (path / "entity_vocab.jsonl").write_text("\n".join(lines), encoding="utf8")
    file.unlink()


def write_bpe(path: Path) -> int:
    """``vocab.json`` and ``merges.txt``, as RoBERTa and LUKE publish them."""
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(SENTENCES, vocab_size=400, special_tokens=specials)
    tokenizer.save_model(str(path))
    return tokenizer.get_vocab_size()


def write_wordpiece(path: Path) -> int:
    """``vocab.txt``, as BERT publishes it; uncased."""
    from tokenizers import BertWordPieceTokenizer

    usual = BertWordPieceTokenizer(lowercase=True)
    texts = map(usual.normalizer.normalize_str, SENTENCES)
    words = [word for text in texts for word, _ in usual.pre_tokenizer.pre_tokenize_str(text)]
    inner = [f"##{piece}" for piece in common_parts([word[1:] for word in words], 50)]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = [*specials, *common_parts(words, 60), *inner]
    (path / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf8")
    write_json(path / "tokenizer_config.json", {"do_lower_case": True})
    return len(vocab)


def write_unigram(path: Path) -> int:
    """``tokenizer.json`` with a Unigram model and added tokens, as XLM-R publishes it."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

    before = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    words = [word for text in SENTENCES for word, _ in before.pre_tokenize_str(text)]
    parts = common_parts(words, 90)
    total = sum(parts.values())
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    vocab = [(x, 0.0) for x in specials] + [(x, math.log(n / total)) for x, n in parts.items()]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=specials.index("<unk>")))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = before
    tokenizer.add_special_tokens([*specials, AddedToken("<mask>", lstrip=True)])
    ends = ("</s>", 2), ("<s>", 0)  # not by name: tokenizers 0.23 has others
    tokenizer.post_processor = processors.RobertaProcessing(*ends)
    tokenizer.save(str(path / "tokenizer.json"))
    return tokenizer.get_vocab_size()


def common_parts(words: list[str], n_longer: int) -> dict[str, int]:
    """The characters of words and the longer parts that cover most of them, with their counts.

    The trainers of ``tokenizers`` for WordPiece and Unigram give other pieces in every run.
    """
    ends = ((word, i, j) for word in words for i in range(len(word)) for j in range(i + 1, i + 7))
    counts = Counter(word[i:j] for word, i, j in ends if j <= len(word))
    longer = sorted((x for x in counts if len(x) > 1), key=lambda x: (-counts[x] * len(x), x))
    characters = sorted(x for x in counts if len(x) == 1)
    return {x: counts[x] for x in [*characters, *longer[:n_longer]]}


def write_sentencepiece(path: Path) -> int:
    """``sentencepiece.bpe.model``, as mLUKE publishes it."""
    sentencepiece = pytest.importorskip("sentencepiece")
    with (path / "sentencepiece.bpe.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES),
            model_writer=file,
            vocab_size=120,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "MLukeTokenizer"})
    model = sentencepiece.SentencePieceProcessor(str(path / "sentencepiece.bpe.model"))
    return len(model) + 2  # <pad> before its pieces, <mask> behind them


PLAIN = ("bert", "roberta", "xlm-roberta")
TOKENIZERS = {
    "bert": write_wordpiece,
    "bert-luke": write_wordpiece,
    "xlm-roberta": write_unigram,
    "mluke": write_sentencepiece,
    "luke-japanese": write_sentencepiece,
}


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf8")
