"""Files on disk or in archives: found, named, decoded, accounted for."""
