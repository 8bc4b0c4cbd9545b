-- How runs stand that this database once acknowledged; what does not come back it has forgotten.
SELECT run.id, run.status, run.attempt FROM soloist.run WHERE run.id = ANY (%(id)s::uuid[])
