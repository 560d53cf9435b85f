"""One total order of a topic's records in several clusters: ``T-global``, exactly once.

Comes in: the records of T of all clusters. Goes out, in the own cluster alone: T-global, and, at home, the hidden log.

- ``names``: the topics and transactional ids of an order.
- ``followed_log``: a log of ours in some cluster, followed.
- ``peers``: the committed facts of the other clusters' lanes, followed.
- ``pulse``: the beats of all processes, and operators' wishes.
- ``arrivals``: the records of the origins, as they arrive at home.
- ``hidden_log``: hidden logs, read in whole transactions.
- ``lane``: the only writer of a cluster: T-global, hidden log and positions in one transaction.
- ``learning``: what a partition learns from the T-globals of others, and from whom next.
- ``partition``: one partition of T: take, show and follow.
- ``catch_up``: what is visible in another cluster's T-global.
- ``ballot``: the part of a lane in elections: beats, wishes, promises.
- ``runner``: a lane at work: its logs checked, its transactions.
- ``ways``: the ways to the clusters, as the log has them.
- ``topics``: the topics of an order, and their logs, made.
- ``process``: the lanes of one cluster.
- ``handle``: an open order, for those that look at it.
- ``model``: decisions without IO.

Invariants of an order, beside those of the engine, as the tests cite them:

- **P** All T-global are prefixes of one order, and nothing visible is taken back.
- **Q** No record is there twice, and none of an origin is left out or out of its origin's order.
- **R** Whatever is down, those that can reach each other go on as far as the protocol allows, and all meet in the end.
- **S** Once an epoch is open, an older one shows nothing beyond what the newer one took over.
"""
