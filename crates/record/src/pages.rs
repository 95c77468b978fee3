//! Columns as Parquet's pages, few a column and row group: integers, DELTA_BINARY_PACKED, and lists of numbers, PLAIN
//! and compressed. The `parquet` crate's own writer handles values and levels one by one; a row of packets has 22 of
//! them and a trial's metrics have a hundred thousand: for integers it needs two and a half times the instructions, and
//! for a file of metrics twice the time.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zerocopy::IntoBytes;
use zstd::bulk::Compressor;

/// Values in a block, which has a least delta, and in a part of it, which has a bit width.
const BLOCK: usize = 128;
const PART: usize = 32;

/// An integer as Parquet stores it: 32 bits or 64, with differences that wrap.
pub(crate) trait Word: Copy + Default + Ord + std::ops::BitOrAssign {
    /// Returns a key in the order of signed values.
    fn signed(self) -> i64;
    fn minus(self, other: Self) -> Self;
    fn raw(self) -> u64;
}

impl Word for i32 {
    #[inline]
    fn signed(self) -> i64 {
        i64::from(self)
    }
    #[inline]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    #[inline]
    fn raw(self) -> u64 {
        u64::from(self.cast_unsigned())
    }
}

impl Word for i64 {
    #[inline]
    fn signed(self) -> i64 {
        self
    }
    #[inline]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    #[inline]
    fn raw(self) -> u64 {
        self.cast_unsigned()
    }
}

/// A column's values, as a column of the file of `Word`s.
pub(crate) trait Value: Copy {
    type Word: Word;
    fn word(self) -> Self::Word;
}

impl Value for u8 {
    type Word = i32;
    #[inline]
    fn word(self) -> i32 {
        i32::from(self)
    }
}
impl Value for u16 {
    type Word = i32;
    #[inline]
    fn word(self) -> i32 {
        i32::from(self)
    }
}
impl Value for u32 {
    type Word = i32;
    #[inline]
    fn word(self) -> i32 {
        self.cast_signed()
    }
}
impl Value for u64 {
    type Word = i64;
    #[inline]
    fn word(self) -> i64 {
        self.cast_signed()
    }
}

/// Makes a column chunk of one page, with its metadata for the row group. For a nullable column `known` marks the
/// values that are there.
pub(crate) fn chunk<T: Value>(
    column: &ColumnDescPtr,
    values: &[T],
    known: Option<&[bool]>,
) -> ParquetResult<(Bytes, ColumnCloseResult)> {
    let rows = values.len();
    let mut bytes = Vec::with_capacity(size_of_val(values) / 2 + BLOCK);
    match known {
        Some(known) => {
            put_levels(known, &mut bytes);
            if known.iter().all(|&known| known) {
                put_deltas(values, &mut bytes);
            } else {
                let there = values.iter().zip(known).filter(|&(_, &known)| known);
                put_deltas(&there.map(|(&value, _)| value).collect::<Vec<_>>(), &mut bytes);
            }
        }
        None => put_deltas(values, &mut bytes),
    }
    let mut pages = Pages::new(column, Encoding::DELTA_BINARY_PACKED, Compression::UNCOMPRESSED);
    let length = bytes.len();
    pages.add(bytes.into(), length, rows, rows)?;
    pages.close()
}

/// The pages of a column chunk, and Parquet's metadata of them.
struct Pages<'a> {
    column: &'a ColumnDescPtr,
    encoding: Encoding,
    compression: Compression,
    sink: TrackedWrite<Vec<u8>>,
    rows: usize,
    values: usize,
    compressed: usize,
    uncompressed: usize,
}

impl<'a> Pages<'a> {
    fn new(column: &'a ColumnDescPtr, encoding: Encoding, compression: Compression) -> Self {
        let sink = TrackedWrite::new(Vec::new());
        Pages { column, encoding, compression, sink, rows: 0, values: 0, compressed: 0, uncompressed: 0 }
    }

    /// Adds a page of compressed bytes, which had `length` before, of `rows` whole rows and of `values` values, with
    /// the levels for nulls and empty lists.
    fn add(&mut self, bytes: Bytes, length: usize, rows: usize, values: usize) -> ParquetResult<()> {
        let page = Page::DataPage {
            num_values: values as u32,
            encoding: self.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
            buf: bytes,
        };
        let page = CompressedPage::new(page, length);
        let written = SerializedPageWriter::new(&mut self.sink).write_page(page)?;
        self.rows += rows;
        self.values += values;
        self.compressed += written.compressed_size;
        self.uncompressed += written.uncompressed_size;
        Ok(())
    }

    /// Returns the column chunk, and its metadata for the row group.
    fn close(self) -> ParquetResult<(Bytes, ColumnCloseResult)> {
        let bytes = Bytes::from(self.sink.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(self.column.clone())
            .set_compression(self.compression)
            .set_encodings(vec![Encoding::RLE, self.encoding])
            .set_total_compressed_size(self.compressed as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(self.values as i64)
            .set_data_page_offset(0)
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((bytes, closed))
    }
}

/// Definition levels of a list's element that is not null: the list is null, is empty, or has this value.
pub(crate) const NO_LIST: i16 = 0;
const EMPTY_LIST: i16 = 1;
const IN_LIST: i16 = 2;

/// A page of lists has at most this many bytes before compression, unless one list alone has more: a reader holds it
/// whole.
const PAGE_BYTES: usize = 8 << 20;

/// Makes column chunks of optional lists of required numbers, with memory that it keeps from one to the next.
pub(crate) struct Lists {
    compressor: Compressor<'static>,
    level: ZstdLevel,
    page: Vec<u8>,
    packed: Vec<u8>,
}

impl Lists {
    pub fn new() -> ParquetResult<Self> {
        let level = ZstdLevel::try_new(1)?;
        let compressor = Compressor::new(level.compression_level()).map_err(packing)?;
        Ok(Lists { compressor, level, page: Vec::new(), packed: Vec::new() })
    }

    /// Makes the column chunk with a list or null for each row, and its metadata for the row group.
    pub fn chunk(
        &mut self,
        column: &ColumnDescPtr,
        lists: &[Option<&[f64]>],
    ) -> ParquetResult<(Bytes, ColumnCloseResult)> {
        let mut pages = Pages::new(column, Encoding::PLAIN, Compression::ZSTD(self.level));
        let mut left = lists;
        loop {
            let mut bytes = 0;
            let room = left.iter().take_while(|list| {
                bytes += list.map_or(0, size_of_val);
                bytes <= PAGE_BYTES
            });
            // A row is never in two pages.
            let (page, rest) = left.split_at(room.count().max(1).min(left.len()));
            let values = self.pack(page)?;
            pages.add(Bytes::copy_from_slice(&self.packed), self.page.len(), page.len(), values)?;
            left = rest;
            if left.is_empty() {
                return pages.close();
            }
        }
    }

    /// Packs a page of some rows, and returns the number of its values.
    fn pack(&mut self, lists: &[Option<&[f64]>]) -> ParquetResult<usize> {
        let (mut repeated, mut defined) = (Runs::default(), Runs::default());
        for list in lists {
            repeated.add(0, 1);
            match list {
                None => defined.add(NO_LIST, 1),
                Some([]) => defined.add(EMPTY_LIST, 1),
                Some(list) => {
                    repeated.add(1, list.len() - 1);
                    defined.add(IN_LIST, list.len());
                }
            }
        }
        let values = defined.total;
        self.page.clear();
        repeated.put(&mut self.page);
        defined.put(&mut self.page);
        for list in lists.iter().flatten() {
            if cfg!(target_endian = "little") {
                self.page.extend_from_slice(list.as_bytes());
            } else {
                self.page.extend(list.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.page.len()));
        self.compressor.compress_to_buffer(&self.page, &mut self.packed).map_err(packing)?;
        Ok(values)
    }
}

fn packing(error: std::io::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// Levels as runs of equal ones.
#[derive(Default)]
struct Runs {
    runs: Vec<u8>,
    level: i16,
    length: usize,
    total: usize,
}

impl Runs {
    fn add(&mut self, level: i16, times: usize) {
        if level != self.level {
            self.end();
            self.level = level;
        }
        self.length += times;
        self.total += times;
    }

    fn end(&mut self) {
        if self.length > 0 {
            put_number((self.length as u64) << 1, &mut self.runs);
            self.runs.push(self.level as u8);
            self.length = 0;
        }
    }

    /// Writes them after their length in bytes.
    fn put(mut self, to: &mut Vec<u8>) {
        self.end();
        to.extend((self.runs.len() as u32).to_le_bytes());
        to.extend(self.runs);
    }
}

/// Writes definition levels of 0 and 1: one run if all are the same, else a bit each (the hybrid of RLE and
/// bit-packing, after its length).
fn put_levels(known: &[bool], to: &mut Vec<u8>) {
    let start = to.len();
    to.extend([0; 4]);
    let first = known.first().copied().unwrap_or(true);
    if known.iter().all(|&one| one == first) {
        put_number((known.len() as u64) << 1, to);
        to.push(u8::from(first));
    } else {
        put_number((known.len().div_ceil(8) as u64) << 1 | 1, to);
        let byte = |eight: &[bool]| {
            eight.iter().enumerate().fold(0, |byte, (bit, &known)| byte | u8::from(known) << bit)
        };
        to.extend(known.chunks(8).map(byte));
    }
    let length = (to.len() - start - 4) as u32;
    to[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Writes values as DELTA_BINARY_PACKED.
fn put_deltas<T: Value>(values: &[T], to: &mut Vec<u8>) {
    put_number(BLOCK as u64, to);
    put_number((BLOCK / PART) as u64, to);
    put_number(values.len() as u64, to);
    put_signed(values.first().map_or(0, |first| first.word().signed()), to);
    let mut start = 0;
    while start + 1 < values.len() {
        let end = (start + BLOCK).min(values.len() - 1);
        let mut deltas = [T::Word::default(); BLOCK];
        let deltas_here = &mut deltas[..end - start];
        let pairs = values[start..end].iter().zip(&values[start + 1..=end]);
        for (delta, (before, value)) in deltas_here.iter_mut().zip(pairs) {
            *delta = value.word().minus(before.word());
        }
        let least = deltas_here.iter().copied().fold(deltas_here[0], Ord::min);
        deltas_here.iter_mut().for_each(|delta| *delta = delta.minus(least));
        put_signed(least.signed(), to);
        let mut widths = [0; BLOCK / PART];
        for (width, part) in widths.iter_mut().zip(deltas.chunks_exact(PART)) {
            let mut all = T::Word::default();
            part.iter().for_each(|&delta| all |= delta);
            *width = (u64::BITS - all.raw().leading_zeros()) as u8;
        }
        to.extend(widths);
        for (&width, part) in widths.iter().zip(deltas.chunks_exact(PART)) {
            put_bits(part, u32::from(width), to);
        }
        start = end;
    }
}

/// Writes the lowest `width` bits of each of [`PART`] values.
fn put_bits<W: Word>(part: &[W], width: u32, to: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut bits, mut filled) = (0u64, 0);
    for value in part.iter().map(|value| value.raw()) {
        bits |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            to.extend_from_slice(&bits.to_le_bytes());
            filled -= u64::BITS;
            // The bits of the value that did not fit; nothing if all of it did.
            bits = (value >> 1) >> (width - 1 - filled);
        }
    }
    // 32 times the width: the rest is half of 64 bits, or nothing.
    if filled > 0 {
        to.extend_from_slice(&bits.to_le_bytes()[..4]);
    }
}

/// Writes a number as ULEB128.
fn put_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Writes a signed number as zigzag in ULEB128.
fn put_signed(number: i64, to: &mut Vec<u8>) {
    put_number((number << 1 ^ number >> 63).cast_unsigned(), to);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::column::reader::get_typed_column_reader;
    use parquet::data_type::{DataType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::*;

    /// Writes a file of one column and reads it back by the library's reader: its values and levels.
    fn read<P: DataType>(values: &[impl Value], known: Option<&[bool]>) -> (Vec<P::T>, Vec<i16>) {
        let repetition = if known.is_some() { "optional" } else { "required" };
        let kind = P::get_physical_type();
        let schema = parse_message_type(&format!("message m {{ {repetition} {kind} c; }}")).unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties).unwrap();
        let column = writer.schema_descr().column(0);
        let mut group = writer.next_row_group().unwrap();
        let (bytes, closed) = chunk(&column, values, known).unwrap();
        group.append_column(&bytes, closed).unwrap();
        group.close().unwrap();
        let file = Bytes::from(writer.into_inner().unwrap());
        let reader = SerializedFileReader::new(file).unwrap();
        let group = reader.get_row_group(0).unwrap();
        let mut column = get_typed_column_reader::<P>(group.get_column_reader(0).unwrap());
        let (mut levels, mut read) = (Vec::new(), Vec::new());
        let told = known.is_some().then_some(&mut levels);
        column.read_records(values.len(), told, None, &mut read).unwrap();
        (read, levels)
    }

    fn comes_back<P: DataType>(
        values: &[impl Value],
        known: &[bool],
        signed: impl Fn(&P::T) -> i64,
    ) -> Result<(), TestCaseError> {
        let words: Vec<i64> = values.iter().map(|value| value.word().signed()).collect();
        let all = read::<P>(values, None).0;
        prop_assert_eq!(&all.iter().map(&signed).collect::<Vec<_>>(), &words);
        let (some, levels) = read::<P>(values, Some(known));
        let there: Vec<i64> = words.iter().zip(known).filter(|&(_, &known)| known).map(|(&w, _)| w).collect();
        prop_assert_eq!(some.iter().map(&signed).collect::<Vec<_>>(), there);
        prop_assert_eq!(levels, known.iter().map(|&known| i16::from(known)).collect::<Vec<_>>());
        Ok(())
    }

    /// Steps of every size, up and down, so that differences wrap and parts of a block have widths of their own.
    fn walk() -> impl Strategy<Value = Vec<u64>> {
        let step = (0u32..64, any::<u64>()).prop_map(|(shift, step)| step >> shift);
        let steps = prop_oneof![Just(0u64), step];
        proptest::collection::vec(steps, 1..400).prop_map(|steps| {
            let sums = steps.iter().scan(0u64, |at, &step| {
                *at = at.wrapping_add(step);
                Some(*at)
            });
            sums.collect()
        })
    }

    proptest! {
        #[test]
        fn whatever_is_written_the_librarys_reader_reads(
            wide in walk(),
            holes in proptest::collection::vec(any::<bool>(), 400),
            whole in any::<Option<bool>>(),
        ) {
            let known: Vec<bool> = holes[..wide.len()].iter().map(|&known| whole.unwrap_or(known)).collect();
            comes_back::<Int64Type>(&wide, &known, |&value| value)?;
            let narrow: Vec<u32> = wide.iter().map(|&value| value as u32).collect();
            comes_back::<Int32Type>(&narrow, &known, |&value| value.into())?;
            let narrow: Vec<u16> = wide.iter().map(|&value| value as u16).collect();
            comes_back::<Int32Type>(&narrow, &known, |&value| value.into())?;
            let narrow: Vec<u8> = wide.iter().map(|&value| value as u8).collect();
            comes_back::<Int32Type>(&narrow, &known, |&value| value.into())?;
        }
    }

    #[test]
    fn a_constant_takes_five_bytes_a_block() {
        let mut bytes = Vec::new();
        put_deltas(&[7u8; 1 + 10 * BLOCK], &mut bytes);
        assert_eq!(bytes.len(), 2 + 1 + 2 + 1 + 10 * 5);
    }
}
