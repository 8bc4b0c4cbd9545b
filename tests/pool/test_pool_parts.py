"""The parts of the pool that can be looked at alone: words, channel, text."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from scheduler.core.errors import SoloistError
from scheduler.kinds.python import PythonKind
from scheduler.pool.channel import Channel, ChannelBroken
from scheduler.pool.text import KEEP, Tail, clean, clean_json, last
from scheduler.pool.words import Word, Words


@pytest.fixture
def words() -> Words:
    fd = Words.create(3)
    try:
        return Words(fd, 3)
    finally:
        os.close(fd)


def test_slots_do_not_touch_each_other(words: Words) -> None:
    for slot in range(3):
        for word in Word:
            words.store(slot, word, slot * 100 + word)
    words.clear(1)
    assert [words.load(0, word) for word in Word] == list(range(8))
    assert [words.load(1, word) for word in Word] == [0] * 8
    assert [words.load(2, word) for word in Word] == list(range(200, 208))


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ((0, None, None), (0, None, None)),
        ((3, 10, ""), (3, 10, "")),
        ((-5, -1, "x"), (0, 0, "x")),
        ((2**70, 2**70, "y"), (2**63 - 1, 2**63 - 1, "y")),
        ((1, 2, "€" * 100), (1, 2, "€" * 42)),
        ((1, 2, "\ud800"), (1, 2, "?")),
    ],
)
def test_progress_is_told_as_far_as_it_fits(
    words: Words, told: tuple[int, int | None, str | None], seen: tuple[int, int | None, str | None]
) -> None:
    assert words.said(1) is None
    words.say(1, *told)
    assert words.said(1) == seen
    assert words.said(0) is None
    assert words.said(2) is None


def test_progress_is_never_torn(words: Words) -> None:
    enough, over, number = threading.Event(), threading.Event(), 0

    def write() -> None:
        nonlocal number
        # until one is seen, too: it may lose the GIL amid a word each time
        while not (number >= 20_000 and enough.is_set()):
            number += 1
            words.say(0, number, number, str(number) * 3)
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen, end = 0, time.monotonic() + 60
    while not over.is_set():
        if (said := words.said(0)) is not None:
            seen += 1
            enough.set()  # before it is judged: the writer must end after a failure as well
            assert said == (said[0], said[0], str(said[0]) * 3)
        elif time.monotonic() > end:
            enough.set()
    writer.join()
    assert words.said(0) == (number, number, str(number) * 3)
    assert seen


def test_a_message_of_any_size_arrives_whole() -> None:
    one, other = (Channel(end) for end in Channel.pair())
    messages = [{"text": "ü" * size} for size in (0, 1, 9_999, 10_000, 60_000, 500_000)]
    sender = threading.Thread(target=lambda: [one.send(message) for message in messages])
    sender.start()
    assert [other.receive() for _ in messages] == messages
    sender.join()
    one.close()
    assert other.receive() is None
    with pytest.raises(BrokenPipeError):
        other.send({})
    other.close()


@pytest.mark.parametrize("rubbish", [b"?", b".", b".{", b".[]", b"." + b"[" * 50_000])
def test_rubbish_is_no_message(rubbish: bytes) -> None:
    end, other = Channel.pair()
    channel = Channel(other)
    end.send(rubbish)
    with pytest.raises(ChannelBroken):
        channel.receive()
    end.close()
    channel.close()


def test_text_for_postgresql() -> None:
    assert clean("plain") == "plain"
    assert clean("a\x00b") == "a\ufffdb"
    assert clean("a\ud800b\udfffü😀") == "a\ufffdb\ufffdü😀"
    assert clean_json([{"\x00": "\ud800"}, 1, None, True]) == [{"\ufffd": "\ufffd"}, 1, None, True]
    assert last("€€€", 7) == "€€"


def test_a_tail_is_bounded_and_begins_at_a_character() -> None:
    tail = Tail()
    tail.append(b"first")
    for _ in range(100):
        tail.append("€".encode() * 5000)
    text = tail.text("and\x00more")
    assert tail.total == 5 + 100 * 15_000
    assert len(text.encode()) <= KEEP
    assert text.strip("€") == "\nand\ufffdmore"
    binary = Tail()
    binary.append(b"\xff" * KEEP)
    assert len(binary.text().encode()) <= KEEP, "replacement characters are longer than what they replace"


def test_elsewhere_than_on_linux_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SoloistError, match="isolation: thread"):
        PythonKind(Path())
