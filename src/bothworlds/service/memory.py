"""What is known of decisions: the ones asked about last are at hand, others are looked up in the store."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from bothworlds.service.rules import State
from bothworlds.service.store import Store

REMEMBERED = 20_000  # decisions whose state is kept at hand
Key: TypeAlias = tuple[int, str]  # the number of an experiment, and the id of a decision


class Memory:
    """The states of decisions. Whoever changes one has it stored, or forgets it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._states: OrderedDict[Key, State] = OrderedDict()

    def recall(self, keys: Sequence[Key]) -> list[State]:
        """Return the states of decisions; they are empty where nothing is stored."""
        states, unknown, found = self._states, dict[Key, State](), list[State]()
        for key in keys:
            state = states.get(key)
            if state is not None:
                states.move_to_end(key)
            else:
                state = unknown.setdefault(key, State())
            found.append(state)
        for number in {number for number, _ in unknown}:
            for record in self.store.find(number, sorted(name for one, name in unknown if one == number)):
                unknown[number, str(record.id)].learn_of(record)
        states.update(unknown)
        return found

    def keep(self, key: Key, state: State) -> None:
        """Remember a state."""
        self._states[key] = state

    def forget(self, keys: Iterable[Key]) -> None:
        """Forget states."""
        for key in keys:
            self._states.pop(key, None)

    def trim(self) -> None:
        """Forget the states that were asked for the longest time ago, if they are too many."""
        while len(self._states) > REMEMBERED:
            self._states.popitem(last=False)

    def clear(self) -> None:
        """Forget all states."""
        self._states.clear()
