//! Where Interests go: by the longest prefix of their names.

use std::collections::BTreeMap;

use streamgauge_wire::ndn::Name;

use super::FaceId;

/// Prefixes and the faces that lead to them.
#[derive(Default)]
pub struct Fib(BTreeMap<Name, Vec<FaceId>>);

impl Fib {
    /// Adds a route; among several to one prefix earlier ones are first.
    pub fn add(&mut self, prefix: Name, face: FaceId) {
        let faces = self.0.entry(prefix).or_default();
        if !faces.contains(&face) {
            faces.push(face);
        }
    }

    /// Forgets a face.
    pub fn remove_face(&mut self, face: FaceId) {
        self.0.values_mut().for_each(|faces| faces.retain(|one| *one != face));
        self.0.retain(|_, faces| !faces.is_empty());
    }

    /// Returns the faces of the longest prefix of `name` that has any.
    pub fn lookup(&self, name: &Name) -> &[FaceId] {
        let of = |length| self.0.get(name.prefix_bytes(length));
        (0..=name.len()).rev().find_map(of).map_or(&[], Vec::as_slice)
    }
}
