"""A name with its label and id, as it is in a list."""

from dataclasses import dataclass

from ..errors import CorpusError
from ..kb.entity import check_id, check_text


@dataclass(frozen=True)
class ListedName:
    """text: the name; white space of any kind and length in it is one space. label: of the spans
    where it is found. id: of what it names; empty if there is none."""

    text: str
    label: str
    id: str = ""

    def checked(self) -> "ListedName":
        """The name as it is stored. Raises CorpusError for a value that is not text, an empty label
        and an invalid id."""
        where = f"The name {self.text!r}"
        text = one_spaced(check_text(self.text, "name", where))
        if not check_text(self.label, "label", where).strip():
            raise CorpusError(f"{where}: label is empty. Every name needs a label.")
        identifier = "" if self.id == "" else check_id(self.id, where)
        if "\0" in identifier:
            raise CorpusError(f"{where}: id is {identifier!r}, which contains the character NUL.")
        return ListedName(text, self.label, identifier)


def one_spaced(text: str) -> str:
    """The text with white space of any kind and length as one space, and none at its ends."""
    return " ".join(text.split())
