from benchmarks.preparation_speed import repeated


def test_copies_are_parts_of_their_own_with_the_same_bytes(tmp_path):
    dumps = [tmp_path / "a.xml", tmp_path / "b.xml"]
    for dump in dumps:
        dump.write_text(f"<mediawiki>{dump.name}</mediawiki>", encoding="utf8")
    assert repeated(dumps, 1, tmp_path / "parts") == dumps
    parts = repeated(dumps, 2, tmp_path / "parts")
    assert [x.name for x in parts] == ["0-a.xml", "0-b.xml", "1-a.xml", "1-b.xml"]
    assert [x.read_bytes() for x in parts] == [x.read_bytes() for x in dumps] * 2
