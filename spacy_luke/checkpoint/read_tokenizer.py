"""Read the tokenizer files of a checkpoint directory as a :class:`PieceTokenizer`.

Only this module and ``write_tokenizer.py`` know the names that ``transformers`` uses for these
files, their fields and special pieces.
"""

import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from ..errors import CheckpointError, VocabError, reading
from ..json_file import read_object
from ..vocab.entity_vocab import FILE_NAMES as ENTITY_FILES
from ..vocab.pieces import SPECIALS, PieceTokenizer, RustModel, check_ids, take_prefix_space
from ..vocab.sentencepiece import MODEL_FILE, SentencePieceModel

# The order in which transformers assigns ids to names that the vocabulary lacks.
_ROLES = ("bos", "eos", "sep", "pad", "cls", "mask")
_ADDITIONAL = "additional_special_tokens"
_OTHERS = ("tokenizer.json", "vocab.json", "vocab.txt")
TOKENIZER_FILES = (MODEL_FILE, *_OTHERS)
MARKERS = ("<ent>", "<ent2>")
_NAMES = {
    "bracket": dict(zip(SPECIALS, ("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"))),
    "angle": dict(zip(SPECIALS, ("<s>", "</s>", "<mask>", "<pad>", "<unk>"))),
}
# Text with several scripts, a ligature and an unassigned character. It is encoded once at loading,
# which detects missing ids of unknown pieces and damaged character maps.
_PROBE = "The caf\u00e9 of T\u014dky\u014d, \u6771\u4eac 12\u00bd \ufb01 \U0001f600 \u0378"


def read_tokenizer(path: Path) -> PieceTokenizer:
    """Read the tokenizer files of a checkpoint directory.

    Uses ``tokenizer.json``, else ``vocab.json`` with ``merges.txt`` (byte-level BPE), else
    ``sentencepiece.bpe.model`` (Unigram, with the ids of XLM-R and mLUKE), else ``vocab.txt``
    (WordPiece). Raises CheckpointError, with file and field, if a file is missing or damaged, and
    VocabError if a special piece is missing.
    """
    config = _read_config(path)
    pieces = _read_pieces(path, config)
    added = {**pieces.listed, **_added_ids(path, pieces, config)}
    ids = {**pieces.vocabulary, **added}
    names = _special_names(config, "[CLS]" in ids and not pieces.sentencepiece)
    additional = _additional_names(path, config)
    if pieces.sentencepiece:
        _assign_ids(path, [*(names[role] for role in _ROLES), *additional], ids)
    special_ids = {}
    for role in SPECIALS:
        if names[role] not in ids:
            raise VocabError(
                f"The tokenizer in {path} has no {names[role]} piece (its {role} piece)."
            )
        special_ids[role] = ids[names[role]]
    hidden = {*(names[role] for role in SPECIALS), *added, *(ids.keys() & additional)}
    all_added = {name: ids[name] for name in sorted(hidden)}
    with reading(str(pieces.file)):
        model = pieces.make(hidden)
        model.encode([_PROBE])
    return PieceTokenizer(model, special_ids, all_added, pieces.prefix_space, _settings(path))


class _PieceFile(NamedTuple):
    """A file of pieces and its content.

    vocabulary: name -> id of pieces that may be matched in text. listed: of other pieces.
    make: builds the model, given the names of pieces that must not be matched in text.
    """

    file: Path
    vocabulary: dict[str, int]
    listed: dict[str, int]
    make: Callable[[set[str]], RustModel | SentencePieceModel]
    prefix_space: bool = False
    sentencepiece: bool = False


def _read_pieces(path: Path, config: dict[str, Any]) -> _PieceFile:
    """The pieces of the first of these files that exists."""
    model, tokenizer, vocab, vocab_txt = (path / name for name in (MODEL_FILE, *_OTHERS))
    # MLukeTokenizer reads this file. A tokenizer.json beside it has an incomplete character map.
    if config.get("tokenizer_class") == "MLukeTokenizer" and model.exists():
        return _sentencepiece(model)
    if tokenizer.exists():
        data = read_object(tokenizer)
        _check_pieces(data, tokenizer)
        return _rust(tokenizer, data, config)
    if vocab.exists() and (path / "merges.txt").exists():
        return _rust(vocab, _byte_level_bpe(vocab, path / "merges.txt"), config)
    if model.exists():
        return _sentencepiece(model)
    if vocab_txt.exists():
        return _rust(vocab_txt, _wordpiece(vocab_txt, config), config)
    raise CheckpointError(
        f"No tokenizer in {path}: expected tokenizer.json, vocab.json with merges.txt, "
        f"{MODEL_FILE}, or vocab.txt."
    )


def _rust(file: Path, data: dict[str, Any], config: dict[str, Any]) -> _PieceFile:
    """data: in the form of ``tokenizer.json``."""
    with reading(f"{file}: added_tokens"):
        listed = {token["content"]: token["id"] for token in data.get("added_tokens") or []}
    check_ids(listed, f"{file}: added_tokens")
    with reading(f"{file}: pre_tokenizer"):
        prefix_space = take_prefix_space(data, config.get("add_prefix_space"))
    vocab = data["model"]["vocab"]
    if isinstance(vocab, list):  # Unigram lists (piece, score) in the order of the ids
        vocab = {piece: i for i, (piece, _) in enumerate(vocab)}
    return _PieceFile(file, vocab, listed, partial(RustModel, data), prefix_space)


def _sentencepiece(file: Path) -> _PieceFile:
    with reading(str(file)):
        model = SentencePieceModel(file.read_bytes(), str(file))
    return _PieceFile(file, model.vocabulary(), model.unmatched, model.without, sentencepiece=True)


def _check_pieces(data: dict[str, Any], file: Path) -> None:
    """Raise CheckpointError if ``model.vocab`` of a ``tokenizer.json`` is invalid, or two pieces
    have one id: the library would save only one of them."""
    model = data.get("model")
    if not isinstance(model, dict):
        raise CheckpointError(f"{file}: model is {_short(model)}; expected an object.")
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        _check_unique_ids(vocab, f"{file}: model.vocab")
    elif not isinstance(vocab, list) or not all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) for entry in vocab
    ):
        raise CheckpointError(
            f"{file}: model.vocab is {_short(vocab)}; expected pieces with ids or scores."
        )
    elif not isinstance(model.get("unk_id"), int):
        raise CheckpointError(
            f"{file}: model.unk_id is {_short(model.get('unk_id'))}; expected the id of the "
            "unknown piece."
        )


def _check_unique_ids(vocab: dict[str, Any], location: str) -> None:
    check_ids(vocab, location)
    owners: dict[int, str] = {}
    for piece, index in vocab.items():
        if owners.setdefault(index, piece) != piece:
            raise CheckpointError(
                f"{location}: {piece!r} and {owners[index]!r} have the same id {index}."
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"


def _settings(path: Path) -> dict[str, Any]:
    """Plain values of ``tokenizer_config.json`` that do not name other files."""
    config = _read_optional(path / "tokenizer_config.json")
    plain = (str, int, float, bool, type(None))
    return {
        key: value
        for key, value in config.items()
        if isinstance(value, plain) and not key.endswith(("_file", "name_or_path"))
    }


def _read_config(path: Path) -> dict[str, Any]:
    """``tokenizer_config.json``, completed by ``special_tokens_map.json``."""
    config = _read_optional(path / "tokenizer_config.json")
    token_map = _read_optional(path / "special_tokens_map.json")
    merged = {**token_map, **{key: value for key, value in config.items() if value is not None}}
    additional = config.get(_ADDITIONAL) or token_map.get(_ADDITIONAL) or []
    if not isinstance(additional, list):
        file = path / (
            "tokenizer_config.json" if config.get(_ADDITIONAL) else "special_tokens_map.json"
        )
        raise CheckpointError(f"{file}: {_ADDITIONAL} is {_short(additional)}; expected a list.")
    return {**merged, _ADDITIONAL: additional}


def _added_ids(path: Path, pieces: _PieceFile, config: dict[str, Any]) -> dict[str, int]:
    """Ids in other files; ``added_tokens.json`` takes precedence."""
    with reading(f"{path / 'tokenizer_config.json'}: added_tokens_decoder"):
        decoder = config.get("added_tokens_decoder", {})
        decoded = {token["content"]: int(index) for index, token in decoder.items()}
    listed = _read_optional(path / "added_tokens.json")
    owners = {index: piece for piece, index in pieces.vocabulary.items()}
    for file, ids in (
        (pieces.file.name, pieces.listed),
        ("tokenizer_config.json", decoded),
        ("added_tokens.json", listed),
    ):
        check_ids(ids, str(path / file))
        for piece, index in ids.items():
            if owners.setdefault(index, piece) != piece:
                raise CheckpointError(
                    f"{path / file}: {piece!r} has the id {index} of {owners[index]!r}."
                )
    return {**decoded, **listed}


def _additional_names(path: Path, config: dict[str, Any]) -> list[str]:
    """Configured additional special pieces, and the markers that mLUKE's tokenizer adds."""
    names = list(config[_ADDITIONAL])
    kind = config.get("tokenizer_class")
    if kind == "MLukeTokenizer" or not kind and any((path / x).exists() for x in ENTITY_FILES):
        names += [config.get(f"entity_token_{i}", name) for i, name in enumerate(MARKERS, 1)]
    return [name for name in map(_content, names) if name]


def _assign_ids(path: Path, names: Iterable[str], ids: dict[str, int]) -> None:
    """Assign the next ids to names without one, as transformers does, but only if the network has
    rows for them according to ``config.json``."""
    n_rows = _read_optional(path / "config.json").get("vocab_size")
    for name in names:
        next_id = max(ids.values()) + 1
        if name not in ids and (not isinstance(n_rows, int) or next_id < n_rows):
            ids[name] = next_id


def _content(token: Any) -> str | None:
    """The string of a piece, given as a string or a serialised AddedToken."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else None


def _special_names(config: dict[str, Any], brackets: bool) -> dict[str, str]:
    """The strings of the special pieces: as configured, else the usual ones of BERT or RoBERTa."""
    names = dict(_NAMES["bracket" if brackets else "angle"])
    names |= {"bos": names["cls"], "eos": names["sep"]}
    for role in names:
        names[role] = _content(config.get(f"{role}_token")) or names[role]
    return names


def _byte_level_bpe(vocab: Path, merges: Path) -> dict[str, Any]:
    _check_unique_ids(read_object(vocab), str(vocab))
    with reading(f"{vocab} or {merges}"):
        tokenizer = Tokenizer(models.BPE.from_file(str(vocab), str(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _serialised(tokenizer)


def _wordpiece(file: Path, config: dict[str, Any]) -> dict[str, Any]:
    """One line per id. If a piece occurs twice, the last line counts, as in transformers."""
    with reading(str(file)):
        tokenizer = Tokenizer(models.WordPiece.from_file(str(file), unk_token="[UNK]"))
    with reading(str(file.with_name("tokenizer_config.json"))):
        tokenizer.normalizer = normalizers.BertNormalizer(
            lowercase=bool(config.get("do_lower_case", True)),
            strip_accents=config.get("strip_accents"),
            handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
        )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return _serialised(tokenizer)


def _serialised(tokenizer: Tokenizer) -> dict[str, Any]:
    return json.loads(tokenizer.to_str())


def _read_optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.exists() else {}
