"""What `soloist init` writes: a first jobs file with its schema beside it, and a function for it to call."""

from __future__ import annotations

SCHEMA = "jobs.schema.json"
_HEAD = f"""\
# yaml-language-server: $schema=./{SCHEMA}
# What runs when. After an edit, `soloist check` finds mistakes, `soloist next` shows the coming ticks, and
# `git show HEAD:jobs.yaml | soloist diff -` what the edit will change. `soloist schema > {SCHEMA}` renews the schema.
version: 1
timezone: UTC # of every job that names none; an IANA name such as Europe/London
defaults: # for every job; each may say otherwise
  timeout: 1m # how long an attempt may take
  retry: {{attempts: 2, backoff: 10s}} # after a failure or a timeout
"""
_JOBS = """\
jobs:
  hello:
    description: Says hello in the log
    every: 5m # or schedule: "0 3 * * *" (crontab), or at: "2026-12-24T18:00:00Z", or neither: by hand only
    call: jobs.hello:greet # the function greet of jobs/hello.py, beside this file
    args: {name: world}
"""
FUNCTION = '''\
"""A job is a function that takes its run's context and the args of jobs.yaml."""


def greet(ctx, name: str) -> dict:
    ctx.logger.info("hello %s, this is run %s", name, ctx.run_key)
    return {"greeted": name}
'''


def starter(*, with_function: bool) -> str:
    """The text of the file. `with_function`: its example calls one that is written beside it; else it is a comment."""
    if with_function:
        return _HEAD + _JOBS
    return _HEAD + "jobs: {}\n" + "".join(f"# {line}\n" for line in _JOBS.splitlines())
