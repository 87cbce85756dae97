//! Stage 2: adds what the candidates depend on, even of kinds that the phase does not read.

use crate::event::Transcript;

/// The positions and those of all ancestors, in time order.
pub(super) fn complete(transcript: &Transcript, positions: &[usize]) -> Vec<usize> {
    let mut wanted = vec![false; transcript.len()];
    for &position in positions {
        wanted[position] = true;
    }
    // A parent comes before its children, so one pass from the end reaches every ancestor.
    for position in (0..wanted.len()).rev() {
        if let Some(parent) = transcript.parent(position).filter(|_| wanted[position]) {
            wanted[parent] = true;
        }
    }
    (0..wanted.len()).filter(|&position| wanted[position]).collect()
}
