//! What is kept, for how long, and what happens when a file is not as it should be.
