//! Names (NDN Packet Format Specification version 0.3, "Name").

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::component::{Component, is_sound};
use super::fault::{Fault, Problem};
use super::tlv::{self, Element, Elements};
use super::types::{MOST_COMPONENTS, MOST_NAME_BYTES, NAME};

/// Components in order, at most [`MOST_COMPONENTS`] and [`MOST_NAME_BYTES`]. A clone and a prefix share its bytes.
///
/// Names compare in canonical order (section "Canonical Order"). That is the order of their bytes: types and
/// lengths are in their shortest form, where the smaller number has the smaller bytes. It borrows as these
/// bytes, so that a map by names is asked for a prefix without making one: `map.get(name.prefix_bytes(3))`.
#[derive(Clone)]
pub struct Name {
    /// The elements of its components, and perhaps of more behind them.
    shared: Arc<[u8]>,
    bytes: u16,
    components: u16,
}

impl Default for Name {
    fn default() -> Self {
        Name { shared: Arc::from([]), bytes: 0, components: 0 }
    }
}

impl Name {
    /// Returns the name of no components: `/`.
    pub fn root() -> Self {
        Name::default()
    }

    /// Its components, one after the other.
    ///
    /// # Errors
    /// [`Fault::NameTooLong`] if they are too many or too long.
    pub fn of<'a>(components: impl IntoIterator<Item = Component<'a>>) -> Result<Self, Problem> {
        Name::root().with(components)
    }

    /// Returns the name with these components behind its own.
    ///
    /// # Errors
    /// [`Fault::NameTooLong`] if they are too many or too long.
    pub fn with<'a>(&self, more: impl IntoIterator<Item = Component<'a>>) -> Result<Self, Problem> {
        let mut bytes = self.as_bytes().to_vec();
        let mut components = usize::from(self.components);
        for component in more {
            let at = bytes.len();
            if components == MOST_COMPONENTS || at + component.element_bytes() > MOST_NAME_BYTES {
                return Err(Fault::NameTooLong.at(at));
            }
            component.put(&mut bytes);
            components += 1;
        }
        Ok(Name { bytes: bytes.len() as u16, components: components as u16, shared: bytes.into() })
    }

    /// Returns the name with this component behind its own.
    ///
    /// # Errors
    /// [`Fault::NameTooLong`] if that is too much.
    pub fn child(&self, component: Component<'_>) -> Result<Self, Problem> {
        self.with([component])
    }

    /// Components that it has.
    pub fn len(&self) -> usize {
        self.components.into()
    }

    /// Returns whether it has no components.
    pub fn is_empty(&self) -> bool {
        self.components == 0
    }

    /// Its components.
    pub fn components(&self) -> Components<'_> {
        Components { elements: Elements::of_bytes(self.as_bytes()), left: self.len() }
    }

    /// Returns component `index`, from 0.
    pub fn get(&self, index: usize) -> Option<Component<'_>> {
        self.components().nth(index)
    }

    /// Returns the last component.
    pub fn last(&self) -> Option<Component<'_>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Its first `components`, or all if it has no more.
    pub fn prefix(&self, components: usize) -> Name {
        let bytes = self.prefix_bytes(components).len() as u16;
        Name { shared: self.shared.clone(), bytes, components: components.min(self.len()) as u16 }
    }

    /// Returns the elements of its first `components`.
    pub fn prefix_bytes(&self, components: usize) -> &[u8] {
        let mut rest = self.components();
        if components > 0 {
            let _ = rest.nth(components - 1);
        }
        &self.as_bytes()[..rest.elements.at()]
    }

    /// Returns the name without its last component; of none, none.
    pub fn parent(&self) -> Name {
        self.prefix(self.len().saturating_sub(1))
    }

    /// Returns whether it begins with `prefix`, which may be all of it.
    pub fn starts_with(&self, prefix: &Name) -> bool {
        self.as_bytes().starts_with(prefix.as_bytes())
    }

    /// Returns the elements of its components: the value of its own element.
    pub fn as_bytes(&self) -> &[u8] {
        &self.shared[..self.bytes.into()]
    }

    /// Returns the bytes of its element.
    pub fn element_bytes(&self) -> usize {
        tlv::element_bytes(NAME, self.bytes.into())
    }

    /// Writes its element.
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        tlv::put_element(to, NAME, self.as_bytes());
    }

    /// Reads the value of its element.
    pub(crate) fn read(elements: &Elements<'_>, element: &Element) -> Result<Self, Problem> {
        let value = elements.value(element)?;
        let mut rest = elements.within(element);
        let mut components = 0;
        while let Some(component) = rest.next()? {
            let kind = u16::try_from(component.kind).map_err(|_| Fault::TypeRange.at(component.start))?;
            if !is_sound(kind, component.to - component.from) {
                return Err(component.length_fault());
            }
            components += 1;
            if components > MOST_COMPONENTS || value.len() > MOST_NAME_BYTES {
                return Err(Fault::NameTooLong.at(component.start));
            }
        }
        Ok(Name { shared: value.into(), bytes: value.len() as u16, components: components as u16 })
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl<'a> IntoIterator for &'a Name {
    type Item = Component<'a>;
    type IntoIter = Components<'a>;
    fn into_iter(self) -> Components<'a> {
        self.components()
    }
}

/// Iterates over a name's components.
#[derive(Clone)]
pub struct Components<'a> {
    elements: Elements<'a>,
    left: usize,
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;
    fn next(&mut self) -> Option<Component<'a>> {
        let element = self.elements.next().ok()??;
        self.left -= 1;
        Component::of(u16::try_from(element.kind).ok()?, self.elements.value(&element).ok()?)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Components<'_> {}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.components()).finish()
    }
}
