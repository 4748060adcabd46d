"""Settings of ``luke_linker`` that ``initialize`` learns from gold links, if they are null."""

from typing import Protocol

from ..errors import ConfigError
from ..kb.knowledge_base import MappedKB
from .class_loss import Targets
from .leave_one_out import CountedLinks, leave_out
from .link_query import LinkQuery
from .type_bias import TypeBias, TypeChoices, add_choices, log_biases


class LinkSettings(Protocol):
    """A component with these settings. kb: its knowledge base."""

    name: str
    kb: MappedKB
    type_bias: TypeBias | None
    leave_one_out: bool | None


class LearnedSettings:
    """Learns ``leave_one_out`` and ``type_bias`` of a component in each initialisation: ``start``,
    ``add`` of all training data, ``finish``. What an earlier one learned, of other data, is learned
    again; what was given is kept."""

    def __init__(self, component: LinkSettings):
        self._component = component
        self._type_bias: TypeBias | None = None
        self._leave_one_out: bool | None = None

    def forget(self) -> None:
        """Set to null what was learned."""
        linker = self._component
        if linker.type_bias == self._type_bias:
            linker.type_bias = None
        if linker.leave_one_out == self._leave_one_out:
            linker.leave_one_out = None
        self._type_bias = self._leave_one_out = None

    def start(self) -> None:
        linker = self._component
        self.forget()
        self._counted = CountedLinks(linker.kb.tables)
        # With the priors of all counts, and with each mention left out of its own.
        self._choices, self._choices_left_out = TypeChoices(), TypeChoices()

    def add(self, query: LinkQuery, targets: Targets) -> None:
        """The mentions of some whole documents."""
        self._counted.add(query, targets[0])
        if self._component.type_bias is None:
            add_choices(self._choices, query, targets)
            add_choices(self._choices_left_out, *leave_out(query, targets))

    def finish(self, n_other: int) -> int:
        """Set both settings, and return the number of links that teach nothing because they were
        counted once, and are left out.

        n_other: gold links of other entities than candidates. Raises ConfigError if mentions are to
        be left out of priors that are not made of counts.
        """
        linker, counted = self._component, self._counted
        choices, choices_left_out = self._choices, self._choices_left_out
        del self._counted, self._choices, self._choices_left_out  # large, and of no more use
        if linker.leave_one_out is None:
            self._leave_one_out = counted.are_left_out(linker.name, n_other)
            linker.leave_one_out = self._leave_one_out
        elif linker.leave_one_out and not linker.kb.tables.has_counts:
            raise ConfigError(
                f"{linker.name}: leave_one_out is true, but the aliases of the knowledge base have "
                "probabilities, not counts. Set it to false or null."
            )
        learned = (choices_left_out if linker.leave_one_out else choices).biases()
        if learned:
            linker.type_bias = self._type_bias = learned
            log_biases(linker.name, learned)
        return counted.alone if linker.leave_one_out else 0
