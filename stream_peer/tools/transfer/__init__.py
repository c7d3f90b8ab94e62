"""A feed as a file, and a file as a feed: a feed moves by moving its log.

**The file** has the feed's slice of the feed-log and its questions. The slice is every record of the feed since the
feed was deleted last, as the fold reads it: a repeat is left out (by its source), and so is what the stored questions
do not know yet (a source behind the offset at which they were stored), so that slice and questions are of one moment.
Rounds that were cut are whole. Settings are in it, as far as they are about the feed, for the reader of the file.
Erased experts are in no round; what is left of them is a digest of the id, in the header. The questions
have their histories, what was emitted of each, and stubs.

**Import** appends the slice to the feed's partition of the feed-log, in its order, with the times that it had; then
the questions go as ``feed-import`` events to control-events, and from there, signed, to their partitions of
forecast-events. The slice comes first, so that no question emits a round that stands before those of its past. The
feed stage folds the records as any others: scored forecasts, losses, alarms and groups follow from them under the
settings applied here, as in a rebuild. Settings records are not appended: they would be in force for all feeds.

**Origins.** Each appended record has the source ``import/ID``, and as offset its line. The id is a digest of the
file, of the name that the feed gets, and of the place in the log where the feed begins (after its last reset or
deletion): the same import has the same id whenever it is tried, and another one after a deletion.

**Retries.** The tool first reads the partition of the feed-log. It appends only the lines behind the last one that
stands there, one batch after the other, so that no line can be missing before one that is there; if one is, the
import is refused. Question events that stand on control-events with the id of the import are not sent again. A second
worker of the same import does no harm: the fold knows a line by its source.

**Refused** is a feed that has questions of another origin, another secret or other meaning of settings (see
``stream-peer import``). Which partition of how many a feed had makes no difference: only the feed's own records are
moved, and the ledger of a feed goes by the times of its own records. A large round is cut as the question stage cuts
it, a large set of questions by ``log.transfers``.

**A feed that an earlier release moved** has its first state in ``feed-import`` records (see
``feeds.former_imports``). They move with it, but can neither be renamed nor get pseudonyms.
"""
