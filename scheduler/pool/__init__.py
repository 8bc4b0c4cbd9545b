"""Process isolation: replica → zygote → warm children.

    REPLICA   any number of threads. Hands bodies to children and reads their answers (`pool.py`, `nursery.py`,
              `leash.py`).
    ZYGOTE    one process with one thread (`zygote.py`): forks children, reaps them, kills them and keeps their trust
              deadlines. It runs no job, so no job can hold it up.
    CHILD     one body at a time in its main thread (`child.py`), many bodies one after the other.

They speak JSON over SOCK_SEQPACKET sockets (`channel.py`), never pickle. What must be cheap or must work while the
other side is frozen (deadline, cancel, progress) is a word in shared memory (`words.py`). Linux only.
"""
