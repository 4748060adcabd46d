"""The tokenizer files of a checkpoint directory to a :class:`PieceTokenizer`.

All that ``transformers`` calls these files, their fields and their special pieces is known here and
in ``write_tokenizer.py`` alone.
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

# The order in which transformers gives ids to names that the vocabulary lacks.
_ROLES = ("bos", "eos", "sep", "pad", "cls", "mask")
_FURTHER = "additional_special_tokens"
_OTHERS = ("tokenizer.json", "vocab.json", "vocab.txt")
TOKENIZER_FILES = (MODEL_FILE, *_OTHERS)
MARKERS = ("<ent>", "<ent2>")
_NAMES = {
    "bracket": dict(zip(SPECIALS, ("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"))),
    "angle": dict(zip(SPECIALS, ("<s>", "</s>", "<mask>", "<pad>", "<unk>"))),
}
# Text of several scripts, a ligature and an unassigned character: a tokenizer that cannot encode it
# (unknown pieces without an id, a damaged character map) is found out when it is read.
_PROBE = "The caf\u00e9 of T\u014dky\u014d, \u6771\u4eac 12\u00bd \ufb01 \U0001f600 \u0378"


def read_tokenizer(path: Path) -> PieceTokenizer:
    """Read the tokenizer files of a checkpoint directory.

    Looks for ``tokenizer.json``, then ``vocab.json`` with ``merges.txt`` (byte-level BPE),
    then ``sentencepiece.bpe.model`` (Unigram, with the ids of XLM-R and mLUKE), then
    ``vocab.txt`` (WordPiece). Raises CheckpointError naming the file that is missing or damaged and
    the field, and VocabError if a special piece is absent.
    """
    config = _read_config(path)
    pieces = _read_pieces(path, config)
    added = {**pieces.listed, **_added_ids(path, pieces, config)}
    ids = {**pieces.vocabulary, **added}
    names = _special_names(config, "[CLS]" in ids and not pieces.sentencepiece)
    further = _further_names(path, config)
    if pieces.sentencepiece:
        _give_ids(path, [*(names[role] for role in _ROLES), *further], ids)
    special_ids = {}
    for role in SPECIALS:
        if names[role] not in ids:
            raise VocabError(
                f"The tokenizer in {path} has no {names[role]} piece (its {role} piece)."
            )
        special_ids[role] = ids[names[role]]
    hidden = {*(names[role] for role in SPECIALS), *added, *(ids.keys() & further)}
    found = {name: ids[name] for name in sorted(hidden)}
    with reading(str(pieces.file)):
        model = pieces.make(hidden)
        model.encode([_PROBE])
    return PieceTokenizer(model, special_ids, found, pieces.prefix_space, _settings(path))


class _Pieces(NamedTuple):
    """The file that has the pieces, and what it says.

    vocabulary: ids of pieces that may be found in text. listed: ids of further ones.
    make: from the names of pieces that are not to be found in text to what finds the others.
    """

    file: Path
    vocabulary: dict[str, int]
    listed: dict[str, int]
    make: Callable[[set[str]], RustModel | SentencePieceModel]
    prefix_space: bool = False
    sentencepiece: bool = False


def _read_pieces(path: Path, config: dict[str, Any]) -> _Pieces:
    """The pieces of the first of these files that exists."""
    model, whole, vocab, lines = (path / name for name in (MODEL_FILE, *_OTHERS))
    # MLukeTokenizer reads this one; a tokenizer.json beside it lacks some of its character map.
    if config.get("tokenizer_class") == "MLukeTokenizer" and model.exists():
        return _sentencepiece(model)
    if whole.exists():
        data = read_object(whole)
        _check_pieces(data, whole)
        return _rust(whole, data, config)
    if vocab.exists() and (path / "merges.txt").exists():
        return _rust(vocab, _byte_level_bpe(vocab, path / "merges.txt"), config)
    if model.exists():
        return _sentencepiece(model)
    if lines.exists():
        return _rust(lines, _wordpiece(lines, config), config)
    raise CheckpointError(
        f"No tokenizer in {path}: expected tokenizer.json, vocab.json with merges.txt, "
        f"{MODEL_FILE}, or vocab.txt."
    )


def _rust(file: Path, data: dict[str, Any], config: dict[str, Any]) -> _Pieces:
    """data: what ``tokenizer.json`` says, or would say. Unigram lists its pieces in order of their
    ids."""
    with reading(f"{file}: added_tokens"):
        listed = {token["content"]: token["id"] for token in data.get("added_tokens") or []}
    check_ids(listed, f"{file}: added_tokens")
    with reading(f"{file}: pre_tokenizer"):
        prefix_space = take_prefix_space(data, config.get("add_prefix_space"))
    vocab = data["model"]["vocab"]
    if isinstance(vocab, list):
        vocab = {piece: i for i, (piece, _) in enumerate(vocab)}
    return _Pieces(file, vocab, listed, partial(RustModel, data), prefix_space)


def _sentencepiece(file: Path) -> _Pieces:
    with reading(str(file)):
        model = SentencePieceModel(file.read_bytes(), str(file))
    return _Pieces(file, model.vocabulary(), model.unmatched, model.without, sentencepiece=True)


def _check_pieces(data: dict[str, Any], file: Path) -> None:
    """Raise CheckpointError unless ``model.vocab`` of a ``tokenizer.json`` gives every piece an id
    of its own: the library would drop all but one piece of an id when it is saved."""
    model = data.get("model")
    if not isinstance(model, dict):
        raise CheckpointError(f"{file}: model is {_short(model)}; expected an object.")
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        _check_own_ids(vocab, f"{file}: model.vocab")
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


def _check_own_ids(vocab: dict[str, Any], where: str) -> None:
    check_ids(vocab, where)
    owners: dict[int, str] = {}
    for piece, index in vocab.items():
        if owners.setdefault(index, piece) != piece:
            raise CheckpointError(
                f"{where}: {piece!r} and {owners[index]!r} have the same id {index}."
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"


def _settings(path: Path) -> dict[str, Any]:
    """Plain values of ``tokenizer_config.json`` that do not name other files."""
    found = _read_optional(path / "tokenizer_config.json")
    plain = (str, int, float, bool, type(None))
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, plain) and not key.endswith(("_file", "name_or_path"))
    }


def _read_config(path: Path) -> dict[str, Any]:
    """``tokenizer_config.json``, and ``special_tokens_map.json`` for what it does not name."""
    config = _read_optional(path / "tokenizer_config.json")
    named = _read_optional(path / "special_tokens_map.json")
    merged = {**named, **{key: value for key, value in config.items() if value is not None}}
    further = config.get(_FURTHER) or named.get(_FURTHER) or []
    if not isinstance(further, list):
        file = path / (
            "tokenizer_config.json" if config.get(_FURTHER) else "special_tokens_map.json"
        )
        raise CheckpointError(f"{file}: {_FURTHER} is {_short(further)}; expected a list.")
    return {**merged, _FURTHER: further}


def _added_ids(path: Path, pieces: _Pieces, config: dict[str, Any]) -> dict[str, int]:
    """Ids that other files list; ``added_tokens.json`` has precedence."""
    with reading(f"{path / 'tokenizer_config.json'}: added_tokens_decoder"):
        decoder = config.get("added_tokens_decoder", {})
        decoded = {token["content"]: int(index) for index, token in decoder.items()}
    further = _read_optional(path / "added_tokens.json")
    owners = {index: piece for piece, index in pieces.vocabulary.items()}
    for file, found in (
        (pieces.file.name, pieces.listed),
        ("tokenizer_config.json", decoded),
        ("added_tokens.json", further),
    ):
        check_ids(found, str(path / file))
        for piece, index in found.items():
            if owners.setdefault(index, piece) != piece:
                raise CheckpointError(
                    f"{path / file}: {piece!r} has the id {index} of {owners[index]!r}."
                )
    return {**decoded, **further}


def _further_names(path: Path, config: dict[str, Any]) -> list[str]:
    """Additional special pieces as configured, and the markers that mLUKE's tokenizer adds."""
    names = list(config[_FURTHER])
    kind = config.get("tokenizer_class")
    if kind == "MLukeTokenizer" or not kind and any((path / x).exists() for x in ENTITY_FILES):
        names += [config.get(f"entity_token_{i}", name) for i, name in enumerate(MARKERS, 1)]
    return [name for name in map(_content, names) if name]


def _give_ids(path: Path, names: Iterable[str], ids: dict[str, int]) -> None:
    """As transformers does, names without an id get the next ones; here, only if
    ``config.json`` says that the network has rows for them."""
    rows = _read_optional(path / "config.json").get("vocab_size")
    for name in names:
        following = max(ids.values()) + 1
        if name not in ids and (not isinstance(rows, int) or following < rows):
            ids[name] = following


def _content(token: Any) -> str | None:
    """The string of a piece, which may be an AddedToken, serialised."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else None


def _special_names(config: dict[str, Any], brackets: bool) -> dict[str, str]:
    """The strings of the special pieces: as configured, else by the family's habit."""
    names = dict(_NAMES["bracket" if brackets else "angle"])
    names |= {"bos": names["cls"], "eos": names["sep"]}
    for role in names:
        names[role] = _content(config.get(f"{role}_token")) or names[role]
    return names


def _byte_level_bpe(vocab: Path, merges: Path) -> dict[str, Any]:
    _check_own_ids(read_object(vocab), str(vocab))
    with reading(f"{vocab} or {merges}"):
        tokenizer = Tokenizer(models.BPE.from_file(str(vocab), str(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _serialised(tokenizer)


def _wordpiece(file: Path, config: dict[str, Any]) -> dict[str, Any]:
    """A line per id; of a piece that occurs twice the last line counts, as in transformers."""
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
