//! Pending calls.
use std::marker::PhantomData;
/// a
#[derive(Debug)]
pub struct PendingCalls<T>(PhantomData<T>);
/// a
#[derive(Debug)]
pub struct PendingMap<K,T>(PhantomData<(K,T)>);
/// a
#[derive(Debug)]
pub enum Match<T> { 
/// a
Live(T) }
