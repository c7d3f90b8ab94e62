"""State survives crashes, random cuts, rebalances and a zombie: modelled through a changelog, without a broker.

The model's state of a key is a hash of everything that was applied to it, so one record too few, too many or out of
order shows. Owners follow one another on one changelog; each append may be the last of its owner's life.
"""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.errors import ForeignWriterError
from stream_peer.log.changelog import ChangelogReader, ChangelogRow, Writer, token_row
from stream_peer.log.stage import Snapshot
from tests.hypothesis_profiles import examples

KEYS = [b"q/a", b"q/b", b"q/c"]
Input = list[tuple[int, int]]  # (which key, what: 0 removes it)
Stored = tuple[int, ChangelogRow]


class CrashError(Exception):
    """The process died right after an append."""


def folded(before: bytes | None, what: int) -> bytes | None:
    if what == 0:
        return None
    return b"%d" % ((int(before or b"7") * 31 + what) % 1_000_003)


def truth(log: Input) -> dict[bytes, bytes]:
    state: dict[bytes, bytes] = {}
    for key, what in log:
        value = folded(state.get(KEYS[key]), what)
        if value is None:
            state.pop(KEYS[key], None)
        else:
            state[KEYS[key]] = value
    return state


class Changelog:
    """The broker's side: offsets, and who is told that an append succeeded."""

    def __init__(self) -> None:
        self.records: list[Stored] = []
        self.end = 0

    def append(self, row: ChangelogRow) -> int:
        self.records.append((self.end, row))
        self.end += 1
        return self.end - 1

    def compact(self, *, tombstones: bool) -> None:
        last = {row.key: offset for offset, row in self.records}
        self.records = [record for record in self.records if last[record[1].key] == record[0]]
        if tombstones:
            self.records = [record for record in self.records if record[1].value is not None]


class Owner:
    """One life of a worker: writes its fencing token, recovers, folds, snapshots."""

    def __init__(self, changelog: Changelog, name: str, fold: ChangelogReader | None = None) -> None:
        self.changelog = changelog
        self.name = name
        self.fold = fold or ChangelogReader()
        self.base = changelog.append(token_row(0, name))

    def recover(self) -> None:
        for offset, row in self.changelog.records:
            self.fold.add(offset, *row)
        recovered = self.fold.recovered()
        self.applied = recovered.applied
        assert recovered.applied == -1 or recovered.head == b"head at %d" % recovered.applied
        self.state = dict(recovered.entries)
        self.writer = Writer(self.fold, 0, self.name, max(self.base + 1, self.fold.next))
        self.dirty: set[bytes] = set()

    def take(self, log: Input) -> None:
        for key, what in log:
            kind = KEYS[key]
            value = folded(self.state.get(kind), what)
            self.dirty.add(kind)
            if value is None:
                self.state.pop(kind, None)
            else:
                self.state[kind] = value
        self.applied += len(log)

    def snapshot(self, append: Callable[[ChangelogRow], int]) -> None:
        snapshot = Snapshot({kind: self.state.get(kind) for kind in sorted(self.dirty)}, b"head at %d" % self.applied)
        for row in self.writer.entry_rows(snapshot, self.applied):
            self.appended(append(row))
        self.appended(append(self.writer.head_row(snapshot, self.applied)))
        self.writer.committed(snapshot, self.applied)
        self.dirty.clear()

    def appended(self, base: int) -> None:
        if base > self.writer.expected:
            between = self.changelog.records
            late = [row.key for offset, row in between if self.writer.expected <= offset < base]
            self.writer.passed(late, base)
        self.writer.appended(base, 1)


class World:
    """Runs one schedule of cuts, crashes and interference to the end of the input."""

    def __init__(self, log: Input, draw: Callable[[int], int]) -> None:
        self.log = log
        self.draw = draw  # draw(n): 0..n-1
        self.changelog = Changelog()
        self.zombie: Owner | None = None
        self.lives = 0
        self.quiet = False

    def append(self, row: ChangelogRow) -> int:
        """An append by the owner, into which a zombie may break, and after which the process may die."""
        chance = self.draw(12)
        if not self.quiet and chance == 10 and self.zombie is not None:
            self.stir(self.zombie)
        offset = self.changelog.append(row)
        if not self.quiet and chance == 11:
            raise CrashError
        return offset

    def stir(self, zombie: Owner) -> None:
        """The former owner goes on as if nothing had happened, or its fencing token arrives only now."""
        if not hasattr(zombie, "writer"):
            self.changelog.append(token_row(0, zombie.name))
            self.zombie = None
            return
        zombie.take(self.log[zombie.applied + 1 : zombie.applied + 1 + self.draw(3)])
        snapshot = Snapshot({kind: zombie.state.get(kind) for kind in sorted(zombie.dirty)}, b"zombie")
        rows = zombie.writer.entry_rows(snapshot, zombie.applied)
        for row in [*rows, zombie.writer.head_row(snapshot, zombie.applied)][: 1 + self.draw(4)]:
            self.changelog.append(row)

    def live(self, fold: ChangelogReader | None) -> Owner:
        """One owner's life until the input is folded or it dies."""
        self.lives += 1
        self.quiet = self.lives > 25
        owner = Owner(self.changelog, f"owner-{self.lives}", fold)
        if not self.quiet and self.draw(6) == 5:
            self.zombie = owner  # frozen between fencing token and recovery
            raise CrashError
        try:
            self.work(owner)
        except CrashError:
            if self.draw(2):
                self.zombie = owner
            raise
        return owner

    def work(self, owner: Owner) -> None:
        owner.recover()
        while owner.applied < len(self.log) - 1 or owner.writer.must_rewrite or owner.dirty:
            owner.take(self.log[owner.applied + 1 : owner.applied + 4 - self.draw(4)])
            if self.draw(3) < 2:
                owner.snapshot(self.append)
                # Compaction lags behind what comes late, and so behind writing again what that outdates.
                if not owner.writer.must_rewrite and self.draw(4) == 3:
                    self.changelog.compact(tombstones=self.draw(2) == 1)

    def run(self) -> dict[bytes, bytes]:
        kept: ChangelogReader | None = None
        while True:
            try:
                owner = self.live(kept)
            except (CrashError, ForeignWriterError):
                kept = None
                continue
            if self.quiet or self.draw(3) < 2:
                return self.read_back(owner)
            kept = owner.fold  # a rebalance that leaves the partition here: the fold reads on

    def read_back(self, owner: Owner) -> dict[bytes, bytes]:
        """What a fresh recovery finds must be what the last owner had."""
        fold = ChangelogReader()
        for offset, row in self.changelog.records:
            fold.add(offset, *row)
        recovered = fold.recovered()
        assert recovered.applied == len(self.log) - 1
        assert recovered.entries == owner.state
        self.leave_nothing_of_what_is_gone(owner)
        return dict(recovered.entries)

    def leave_nothing_of_what_is_gone(self, owner: Owner) -> None:
        """A last snapshot, without news, buries what is gone: compaction then leaves one record a key of the state."""
        self.quiet = True
        owner.snapshot(self.append)
        self.changelog.compact(tombstones=True)
        keys = {row.key for _, row in self.changelog.records if b"/claim/" not in row.key}
        assert keys == {b"0/head", *(b"0/" + kind for kind in owner.state)}


inputs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=14)


@given(log=inputs, choices=st.data())
@settings(max_examples=examples(600), deadline=None)
def test_state_is_exact_after_any_crashes_cuts_compactions_and_a_zombie(log: Input, choices: st.DataObject) -> None:
    world = World(log, lambda n: choices.draw(st.integers(0, n - 1)))

    assert world.run() == truth(log)


@given(log=inputs, seed=st.randoms(use_true_random=False))
@settings(max_examples=examples(400), deadline=None)
def test_state_is_exact_under_random_schedules(log: Input, seed: object) -> None:
    for _ in range(10):
        world = World(log, seed.randrange)  # type: ignore[attr-defined]  # hypothesis' Random

        assert world.run() == truth(log)
