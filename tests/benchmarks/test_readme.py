"""The list of benchmarks is complete."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_every_command_is_in_the_list():
    listed = (FOLDER / "README.md").read_text(encoding="utf8")
    commands = {
        path.stem for path in FOLDER.glob("*.py") if "__main__" in path.read_text(encoding="utf8")
    }
    assert len(commands) > 20
    assert not [x for x in sorted(commands) if f"| `python -m benchmarks.{x}" not in listed]
