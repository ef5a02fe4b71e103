//! What a chat goes through, without sockets: a model that follows a script, and a store in memory.

mod budget;
mod cluster;
mod cluster_faults;
mod cluster_nats;
mod dropped;
mod extension;
mod failing;
mod harness;
mod memory;
mod routing;
mod semantic;
mod tools;
