//! Writes messages of Protocol Buffers: the few kinds of fields that OTLP uses.

/// The text of a message.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// The bytes of the whole message.
    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u8) {
        self.raw_varint(u64::from(field << 3) | u64::from(wire));
    }

    /// A number or a choice; zero is what a missing field means.
    pub(super) fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.number(field, value);
        }
    }

    /// A number, also zero.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.raw_varint(value);
    }

    /// Eight bytes.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A double.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// Bytes or a text; nothing when it is empty.
    pub(super) fn bytes_of(&mut self, field: u32, value: &[u8]) {
        if !value.is_empty() {
            self.whole(field, value);
        }
    }

    /// Several values of eight bytes.
    pub(super) fn packed64(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
        self.bytes_of(field, &bytes);
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        fill(&mut inner);
        self.whole(field, &inner.0);
    }

    /// Bytes or a text, also an empty one.
    pub(super) fn whole(&mut self, field: u32, value: &[u8]) {
        self.tag(field, 2);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }
}
