-- Seconds by group, of the newest configuration.
SELECT retention FROM soloist.config ORDER BY generation DESC LIMIT 1
