"""Messages → log: bounded queue, then disk spool, then counted drops. Nothing here is called on the reactor's thread
but `publisher.Publisher.offer`, which never waits.
"""
