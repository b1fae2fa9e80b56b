"""Clusters: which pages belong together, kept up as pages come, change and go.

    contract                         what every index promises; `opening` picks one
    memory                           the reference, in this process: `graph` has the clusters, `contents` what is kept
    redis                            the same on Redis: `index` takes a batch in three calls
      lua/records, lua/forest        layout of the records, linking
      lua/register, lua/link         a version arrives, verified edges
      settling, marks                ghosts, splits, new policies; what a server that lost its latest writes gets again
      asking                         what is asked
    splitting                        does a cluster fall apart when one node leaves?
    identity, acceptance, changes    when two pages are one, when a policy joins them, what happened to a page

Postings and stored sketches are the consumer's: `clusterd_consumer.postings`.
"""
