"""The names of what can go wrong with a link, and how often each is in a history."""

REQUESTS = "requests"
CRASHES = "crashes"
RIVALS = "rivals"
LEADERS = "leaders"
LOSSES = "losses"
TRUNCATIONS = "truncations"
RETENTION = "retention"
COMPACTION = "compaction"
RESUMES = "resumes"
HANGING = "hanging"
COORDINATORS = "coordinators"
STATES = "states"
GROUPS = "groups"
LINK = "link"
TOPICS = "topics"
REMADE = "remade"
POSITIONS = "positions"
OTHERS = "others"
LAYOUTS = "layouts"

LIKELY = {
    REQUESTS: 0.6,
    CRASHES: 0.5,
    RIVALS: 0.25,
    LEADERS: 0.4,
    LOSSES: 0.1,
    TRUNCATIONS: 0.1,
    RETENTION: 0.2,
    COMPACTION: 0.2,
    RESUMES: 0.15,
    HANGING: 0.12,
    COORDINATORS: 0.15,
    STATES: 0.15,
    GROUPS: 0.12,
    LINK: 0.12,
    TOPICS: 0.5,
    REMADE: 0.3,
    POSITIONS: 0.15,
    OTHERS: 0.3,
    LAYOUTS: 0.3,
}
"""A seed chooses among them. Those from ``link`` on need a link that the engine itself makes."""

FAULTS = tuple(LIKELY)
