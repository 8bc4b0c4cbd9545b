-- Why this replica's edited file is not in use (NULL: it is).
UPDATE soloist.replica SET file_problem = %(problem)s::text WHERE id = %(me)s::uuid
