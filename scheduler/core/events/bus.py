"""How events reach their listeners."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.core.events.event import Event

Listener = Callable[[Event], None]


class Bus:
    """Hands each event to every listener, in the publisher's thread.

    A listener that raises is reported to `on_error` and is otherwise ignored: no edge may break the engine. A listener
    that has slow work to do queues it for a thread of its own.
    """

    def __init__(self, on_error: Callable[[Event, Exception], None] | None = None) -> None:
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self._who_hears: dict[type[Event], tuple[Listener, ...]] = {}
        self._on_error = on_error

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> None:
        """Add a listener to these kinds of events, or to all; not meant to be called once the engine runs."""
        self._listeners.append((listener, kinds or (Event,)))
        self._who_hears.clear()

    def publish(self, event: Event) -> None:
        """Tell everybody whom it concerns. Never raises."""
        listeners = self._who_hears.get(type(event))
        if listeners is None:
            listeners = tuple(listener for listener, kinds in self._listeners if isinstance(event, kinds))
            self._who_hears[type(event)] = listeners
        for listener in listeners:
            try:
                listener(event)
            except Exception as error:
                if self._on_error is not None:
                    self._on_error(event, error)
