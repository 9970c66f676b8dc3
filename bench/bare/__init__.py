"""The rows of Tidemill written by bare SQL: what a store can do when nothing else takes time."""
