"""The contract of the store, held against the SQLite file and the store in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Thread

import pytest

from bot.answering import answer
from bot.questions.dialogue import Conversation
from bot.questions.parsed import Parsed
from bot.store.clock import SteppedClock
from bot.store.memory import MemoryStore
from bot.store.port import Store
from bot.store.records import (
    Asked,
    ConversationKey,
    Feedback,
    KeptStudy,
    Person,
    Reported,
    Retention,
    SettingsOf,
)
from bot.store.sqlite.store import SqliteStore
from rules.catalog.catalogue import Catalogue
from rules.cost.study import PurchaseStudy, StudyMeasurement
from rules.cost.types import AmountRange, OwnershipCost

START = datetime(2026, 5, 4, 9, 30, 0, 123457, tzinfo=UTC)
ANN, BEN = Person("T1", "U1"), Person("T1", "U2")
STRANGER = Person("T2", "U1")
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def clock() -> SteppedClock:
    """A clock that the test moves."""
    return SteppedClock(START)


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock) -> Iterator[Store]:
    """An empty store of each kind."""
    made: Store = SqliteStore(tmp_path / "s.db", clock) if request.param == "sqlite" else MemoryStore(clock)
    yield made
    made.close()


def asked(id: str, who: Person = ANN, at: datetime = START, **more: object) -> Asked:
    """A row of the trail."""
    return dataclasses.replace(
        Asked(
            id=id,
            who=who,
            channel="C1",
            at=at,
            text="¿13B qlora? <@U9>",
            answer="FITS: …",
            lang="es",
            rules="0.1.0",
            catalogue="2026-04-01",
        ),
        **more,
    )


def test_a_conversation_is_kept_until_it_expires(store: Store, clock: SteppedClock) -> None:
    """A saved state is loaded again with every part, is replaced by the next, and is gone when its time is over."""
    key = ConversationKey.of(ANN, "C1", None)
    first = answer("13B fine-tune QLoRA on a 4090", catalogue=Catalogue.load()).conversation
    assert store.conversations.load(key) is None
    store.conversations.save(key, first, HOUR)
    assert store.conversations.load(key) == first
    clock.move(50 * MINUTE)
    store.conversations.save(key, Conversation(), HOUR)
    clock.move(59 * MINUTE)
    assert store.conversations.load(key) == Conversation()
    clock.move(MINUTE)
    assert store.conversations.load(key) is None


def test_a_thread_is_shared_and_a_channel_is_not(store: Store) -> None:
    """In a thread all who write share one state; outside each person has their own in each channel."""
    state = answer("llama 3 8b on a T4", catalogue=Catalogue.load()).conversation
    store.conversations.save(ConversationKey.of(ANN, "C1", "17.5"), state, HOUR)
    assert store.conversations.load(ConversationKey.of(BEN, "C1", "17.5")) == state
    store.conversations.save(ConversationKey.of(ANN, "C1", None), state, HOUR)
    others = [
        (BEN, "C1", None),
        (ANN, "C2", None),
        (STRANGER, "C1", None),
        (STRANGER, "C1", "17.5"),
        (ANN, "C2", "17.5"),
    ]
    assert all(store.conversations.load(ConversationKey.of(*key)) is None for key in others)
    store.conversations.forget(ConversationKey.of(BEN, "C1", "17.5"))
    assert store.conversations.load(ConversationKey.of(ANN, "C1", "17.5")) is None
    assert store.conversations.load(ConversationKey.of(ANN, "C1", None)) == state


def test_the_trail_says_who_asked_what(store: Store) -> None:
    """A row comes back whole, the latest first, only to the person who asked; the same id is added once."""
    parsed = answer("70B for 20 users", catalogue=Catalogue.load()).parsed
    rows = [asked(f"a{n}", at=START + n * MINUTE, thread="17.5", parsed=parsed) for n in range(3)]
    assert all(store.trail.add(row) for row in rows)
    assert not store.trail.add(asked("a1", BEN))
    assert store.trail.of(ANN) == (rows[2], rows[1], rows[0])
    assert store.trail.of(ANN, limit=1) == (rows[2],)
    assert store.trail.of(BEN) == store.trail.of(STRANGER) == ()
    assert store.trail.get("a0") == rows[0]
    assert isinstance(store.trail.get("a0").parsed, Parsed)  # type: ignore[union-attr]
    assert store.trail.get("none") is None


def test_all_rows_come_in_order(store: Store) -> None:
    """Everything in the trail is read, page after page, the oldest first, two of one moment by their ids."""
    ids = [f"a{n:04}" for n in range(1203)]
    for n, id in reversed(list(enumerate(ids))):
        store.trail.add(asked(id, at=START + (n // 7) * MINUTE))
    assert [row.id for row in store.trail.all()] == ids


def test_a_person_deletes_only_their_own(store: Store) -> None:
    """Deleting takes a person's own rows, those named or all, with feedback on them and their private conversations."""
    for row in (asked("a1"), asked("a2"), asked("a3"), asked("b1", BEN)):
        store.trail.add(row)
    store.opinions.add(Feedback(answer_id="a1", who=BEN, at=START, right=True))
    private, thread = ConversationKey.of(ANN, "C1", None), ConversationKey.of(ANN, "C1", "17.5")
    for key in (private, thread, ConversationKey.of(BEN, "C1", None)):
        store.conversations.save(key, Conversation(), HOUR)
    assert store.trail.delete(ANN, ["a1", "b1", "none"]) == 1
    assert store.opinions.on("a1") == ()
    assert store.trail.get("b1") is not None
    assert store.conversations.load(private) is not None
    assert store.trail.delete(ANN) == 2
    assert store.trail.of(ANN) == ()
    assert store.conversations.load(private) is None
    assert store.conversations.load(thread) is not None
    assert store.conversations.load(ConversationKey.of(BEN, "C1", None)) is not None
    assert store.trail.delete(ANN) == 0


def test_an_answer_is_shared_once_and_by_its_owner(store: Store) -> None:
    """Of two presses of the same button one shares; another person's press never does."""
    store.trail.add(asked("a1"))
    assert not store.trail.share(BEN, "a1")
    assert store.trail.share(ANN, "a1")
    assert not store.trail.share(ANN, "a1")
    assert store.trail.get("a1") == asked("a1", shared=True)


def test_settings_belong_to_one_user_or_channel(store: Store) -> None:
    """Settings are set, replaced and removed by name, and a channel with a user's id is another owner."""
    user, channel = SettingsOf("T1", "user", "X1"), SettingsOf("T1", "channel", "X1")
    store.preferences.set(user, "language", "es")
    store.preferences.set(user, "language", "en")
    store.preferences.set(user, "digest", "off")
    assert store.preferences.get(user) == {"digest": "off", "language": "en"}
    assert store.preferences.get(channel) == {}
    store.preferences.set(user, "digest", None)
    store.preferences.set(channel, "none", None)
    assert store.preferences.get(user) == {"language": "en"}


def test_an_event_is_claimed_once(store: Store) -> None:
    """Of twenty threads that claim the same fifty events, each event has one winner."""
    won: list[str] = []

    def claim() -> None:
        won.extend(id for id in (f"Ev{n}" for n in range(50)) if store.events.claim(id))

    threads = [Thread(target=claim) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted(f"Ev{n}" for n in range(50))


def test_work_is_taken_in_order_and_finished_once(store: Store) -> None:
    """The oldest is taken first, by one worker, and a finished id is never put or taken again."""
    assert store.work.put("w1", "answer", {"text": "13B", "blocks": [1, None]})
    assert store.work.put("w2", "answer", {})
    assert not store.work.put("w1", "answer", {"text": "other"})
    job = store.work.take("one", MINUTE)
    assert job is not None
    assert (job.id, job.attempt, job.stage, job.put_at) == ("w1", 1, "", START)
    assert job.payload == {"text": "13B", "blocks": [1, None]}
    second = store.work.take("two", MINUTE)
    assert second is not None
    assert second.id == "w2"
    assert store.work.take("three", MINUTE) is None
    assert store.work.open() == 2
    assert store.work.finish(job, asked("a1"))
    assert store.trail.get("a1") == asked("a1")
    assert not store.work.finish(job, asked("a2"))
    assert store.trail.get("a2") is None
    assert not store.work.put("w1", "answer", {})
    assert store.work.open() == 1


def test_a_lost_lease_goes_to_the_next(store: Store, clock: SteppedClock) -> None:
    """When a lease ends the next worker gets the work with what was noted last, and the first can do nothing to it."""
    store.work.put("w1", "answer", {})
    first = store.work.take("one", MINUTE)
    assert first is not None
    assert store.work.note(first, "posting")
    clock.move(50 * timedelta(seconds=1))
    assert store.work.renew(first, MINUTE)
    clock.move(59 * timedelta(seconds=1))
    assert store.work.take("two", MINUTE) is None
    clock.move(timedelta(seconds=1))
    second = store.work.take("one", MINUTE)
    assert second is not None
    assert (second.attempt, second.stage) == (2, "posting")
    for lost in (
        store.work.renew(first, MINUTE),
        store.work.note(first, "x"),
        store.work.put_back(first),
        store.work.finish(first, asked("a1")),
    ):
        assert lost is False
    assert store.trail.get("a1") is None
    assert store.work.finish(second)


def test_work_can_be_given_back_and_chosen_by_kind(store: Store) -> None:
    """Work that is given back is free at once; a worker takes only the kinds that it asks for."""
    store.work.put("w1", "benchmark", {})
    store.work.put("w2", "answer", {})
    job = store.work.take("one", MINUTE, kinds=["answer", "digest"])
    assert job is not None
    assert job.id == "w2"
    assert store.work.take("one", MINUTE, kinds=["answer"]) is None
    assert store.work.take("one", MINUTE, kinds=[]) is None
    assert store.work.put_back(job)
    again = store.work.take("two", MINUTE, kinds=["answer"])
    assert again is not None
    assert again.attempt == 2


def test_feedback_adds_up_a_person_and_an_answer(store: Store) -> None:
    """A later word replaces the same person's earlier one, and what it leaves out stays; without its answer it is
    not kept."""
    store.trail.add(asked("a1"))
    said = Reported(key="peak_gib_per_gpu", value=21.3, said="really 21.3 GiB")
    assert store.opinions.add(Feedback(answer_id="a1", who=ANN, at=START, right=True))
    assert store.opinions.add(Feedback(answer_id="a1", who=BEN, at=START + MINUTE, right=True))
    assert store.opinions.add(Feedback(answer_id="a1", who=ANN, at=START + HOUR, right=False))
    assert store.opinions.add(Feedback(answer_id="a1", who=ANN, at=START + 2 * HOUR, reported=said))
    assert not store.opinions.add(Feedback(answer_id="gone", who=ANN, at=START))
    ann = Feedback(answer_id="a1", who=ANN, at=START + 2 * HOUR, right=False, reported=said)
    assert store.opinions.on("a1") == (Feedback(answer_id="a1", who=BEN, at=START + MINUTE, right=True), ann)
    assert store.opinions.reported() == ((ann, asked("a1")),)


def study(id: str = "s1") -> KeptStudy:
    """A study as the cost rules make it."""
    money = AmountRange(Decimal("1.10"), Decimal("2"), Decimal("3.000"))
    owned = OwnershipCost(
        accelerator="RTX 4090",
        devices=2,
        months=36,
        purchase_price=money,
        residual_value=money,
        per_month=money,
        total=money,
        lines=(),
    )
    first = StudyMeasurement(day=date(2026, 5, 1), machine="m", side="rented", busy_hours=7.25, tokens_s=None)
    return KeptStudy(
        study=PurchaseStudy(
            id=id,
            owned=owned,
            rent_usd_per_hour=Decimal("0.34"),
            assumed_hours_per_week=40.0,
            assumed_rented_tokens_s=50.0,
            assumed_owned_tokens_s=60.0,
        ),
        who=ANN,
        begun=START,
        measurements=(first,),
    )


def test_a_study_gathers_its_days(store: Store) -> None:
    """A study comes back with exact money and its days in order; a day measured again replaces the one before."""
    store.studies.save(study())
    later = StudyMeasurement(day=date(2026, 5, 2), machine="m", side="owned", busy_hours=1.0, tokens_s=33.5)
    again = dataclasses.replace(study().measurements[0], busy_hours=8.0)
    assert store.studies.measured("s1", later)
    assert store.studies.measured("s1", again)
    assert not store.studies.measured("none", later)
    whole = dataclasses.replace(study(), measurements=(again, later))
    assert store.studies.get("s1") == whole
    store.studies.save(dataclasses.replace(study(), measurements=()))
    assert store.studies.get("s1") == whole
    assert str(whole.study.owned.purchase_price.high) == "3.000"
    assert store.studies.of("T1") == (whole,)
    assert store.studies.of("T2") == ()
    assert store.studies.delete("s1")
    assert not store.studies.delete("s1")
    assert store.studies.get("s1") is None
    assert store.info().rows["study_measurements"] == 0


def test_purging_keeps_what_is_young_open_or_reported(store: Store, clock: SteppedClock) -> None:
    """Each kind goes when its days are over; unfinished work, settings, studies and answers with a reported figure
    stay."""
    retention = Retention(answers_days=30, conversations_days=5, events_days=2, done_work_days=3, feedback_days=100)
    store.trail.add(asked("old"))
    store.trail.add(asked("measured"))
    store.opinions.add(Feedback(answer_id="old", who=ANN, at=START, right=True))
    store.opinions.add(Feedback(answer_id="measured", who=ANN, at=START, outcome="oom"))
    store.events.claim("Ev1")
    for id in ("done", "open"):
        store.work.put(id, "answer", {})
    job = store.work.take("one", MINUTE)
    assert job is not None
    store.work.finish(job)
    store.preferences.set(SettingsOf("T1", "user", "U1"), "language", "es")
    store.studies.save(study())
    store.conversations.save(ConversationKey.of(ANN, "C1", None), Conversation(), HOUR)
    store.conversations.save(ConversationKey.of(ANN, "C1", "17.5"), Conversation(), 90 * DAY)
    assert set(store.purge(retention).values()) == {0}
    clock.move(31 * DAY)
    store.trail.add(asked("young", at=clock.now()))
    assert store.purge(retention) == {"conversations": 2, "opinions": 0, "asked": 1, "events": 1, "work": 1}
    rows = store.info().rows
    assert rows["opinions"] == 1
    assert (rows["preferences"], rows["studies"]) == (1, 1)
    assert store.work.open() == 1
    assert {row.id for row in store.trail.of(ANN)} == {"measured", "young"}
    clock.move(70 * DAY)
    assert store.purge(retention) == {"conversations": 0, "opinions": 1, "asked": 2, "events": 0, "work": 0}


def test_info_counts_what_is_there(store: Store) -> None:
    """The summary has the rows of each kind, the open work and the oldest question."""
    empty = store.info()
    assert set(empty.rows.values()) == {0}
    assert (empty.work_open, empty.oldest) == (0, None)
    store.trail.add(asked("a1", at=START + DAY))
    store.trail.add(asked("a2"))
    store.work.put("w1", "answer", {})
    assert (store.info().rows["asked"], store.info().work_open, store.info().oldest) == (2, 1, START)
