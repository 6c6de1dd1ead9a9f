"""What is known of decisions: the ones asked about last are at hand, others are looked up in the store."""

from collections import OrderedDict, defaultdict
from collections.abc import Sequence

from bothworlds.service.rules import State
from bothworlds.service.store import Store

REMEMBERED = 20_000  # decisions of an experiment whose state is kept at hand


class Memory:
    """The states of decisions, by the number of their experiment and their id.

    Whoever changes a state has it stored, or forgets it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._states: defaultdict[int, OrderedDict[str, State]] = defaultdict(OrderedDict)

    def recall(self, experiment: int, ids: Sequence[str | None]) -> list[State]:
        """Return the states of decisions; they are empty where nothing is stored, as for one without an id yet."""
        states, unknown, found = self._states[experiment], dict[str, State](), list[State]()
        for name in ids:
            if name is None:
                found.append(State())
            elif (state := states.get(name)) is not None:
                states.move_to_end(name)
                found.append(state)
            else:
                found.append(unknown.setdefault(name, State()))
        if unknown:
            for record in self.store.find(experiment, sorted(unknown)):
                unknown[str(record.id)].learn_of(record)
            states.update(unknown)
        return found

    def keep(self, experiment: int, name: str, state: State) -> None:
        """Remember a state."""
        self._states[experiment][name] = state

    def forget(self, experiment: int, name: str | None) -> None:
        """Forget a state, if there is one."""
        self._states[experiment].pop(name or "", None)

    def trim(self) -> None:
        """Forget the states that were asked for the longest time ago, where they are too many."""
        for states in self._states.values():
            for _ in range(len(states) - REMEMBERED):
                states.popitem(last=False)

    def clear(self) -> None:
        """Forget all states."""
        self._states.clear()
