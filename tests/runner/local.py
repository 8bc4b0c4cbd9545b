"""A replica inside the test's own process: for what needs no process to die."""

from __future__ import annotations

from typing import Any

from replicas import HERE, eventually

from scheduler.app import Soloist
from scheduler.config.jobs_file import Plan, parse
from scheduler.config.settings import Settings
from scheduler.core.events import Event


class Local:
    """One replica, started; `close` drains it. `wait(job)`: the job's only run once it has ended."""

    def __init__(self, url: str, jobs: str | Plan, name: str = "local", **settings: Any) -> None:
        self.events: list[Event] = []
        self._closed = False
        fields = {"replica": name, "lease": 9.0, "drain": 1.0, "seats": 8, **settings}
        plan = jobs if isinstance(jobs, Plan) else parse(jobs.encode(), "jobs.yaml", HERE / "bodies")
        self.parts, self.service = Soloist(Settings(**fields), plan, url, (self.events.append,)).wire()
        self.service.start()

    def of(self, kind: type[Event], **facts: Any) -> list[Any]:
        """The events of this kind with these facts."""
        found = [event for event in list(self.events) if isinstance(event, kind)]
        return [event for event in found if all(getattr(event, k) == v for k, v in facts.items())]

    def heard(self, kind: type[Event], **facts: Any) -> Any:
        """Wait for such an event."""
        return eventually(lambda: self.of(kind, **facts), f"{kind.__name__} {facts}")[0]

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.service.stop()
            self.service.drain()
