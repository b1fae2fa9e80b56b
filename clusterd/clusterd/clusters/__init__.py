"""Clusters: which pages belong together, kept up as pages come, change and go.

    contract          what every index promises; `opening` picks one
    memory, forest    the reference, in this process
    redis_index       the same on Redis: a batch in three calls
      lua/records     layout of the records        lua/register   a version arrives
      lua/forest      linking                      lua/link       verified edges
      redis_settling  ghosts, splits, new policies  lua/dismiss, lua/part, lua/move; `splitting` has the search
      redis_questions what is asked
    identity, acceptance, changes    when two pages are one, when a policy joins them, what happened to a page

Postings and stored sketches are the consumer's: `clusterd_consumer.postings`.
"""
