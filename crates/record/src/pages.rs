//! Columns of integers as Parquet's pages: DELTA_BINARY_PACKED, one page a column and row group. What comes out is what the
//! `parquet` crate's own writer makes, at two fifths of its instructions: it takes values one by one,
//! and a row has 22.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Values in a block, which has a least delta, and in a part of it, which has a bit width.
const BLOCK: usize = 128;
const PART: usize = 32;

/// An integer as Parquet stores it: 32 bits or 64, whose differences wrap.
pub(crate) trait Word: Copy + Default + Ord + std::ops::BitOrAssign {
    /// In the order of signed values.
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

/// A column chunk of one page, with what the row group is told of it. Of a nullable column `known` says where there is a
/// value.
pub(crate) fn chunk<T: Value>(
    column: &ColumnDescPtr,
    values: &[T],
    known: Option<&[bool]>,
) -> ParquetResult<(Bytes, ColumnCloseResult)> {
    let rows = values.len();
    let mut page = Vec::with_capacity(size_of_val(values) / 2 + BLOCK);
    match known {
        Some(known) => {
            put_levels(known, &mut page);
            if known.iter().all(|&known| known) {
                put_deltas(values, &mut page);
            } else {
                let there = values.iter().zip(known).filter(|&(_, &known)| known);
                put_deltas(&there.map(|(&value, _)| value).collect::<Vec<_>>(), &mut page);
            }
        }
        None => put_deltas(values, &mut page),
    }
    let length = page.len();
    let page = Page::DataPage {
        buf: page.into(),
        num_values: rows as u32,
        encoding: Encoding::DELTA_BINARY_PACKED,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let mut sink = TrackedWrite::new(Vec::with_capacity(length + 64));
    SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(page, length))?;
    let bytes = Bytes::from(sink.into_inner()?);
    let metadata = ColumnChunkMetaData::builder(column.clone())
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::RLE, Encoding::DELTA_BINARY_PACKED])
        .set_total_compressed_size(bytes.len() as i64)
        .set_total_uncompressed_size(bytes.len() as i64)
        .set_num_values(rows as i64)
        .set_data_page_offset(0)
        .build()?;
    let closed = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok((bytes, closed))
}

/// Definition levels of 0 and 1: one run if all are the same, else a bit each (the hybrid of RLE and bit-packing, after its
/// length).
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

/// DELTA_BINARY_PACKED.
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

/// The lowest `width` bits of each, of which there are [`PART`].
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
            // What of the value did not fit; nothing if all of it did.
            bits = (value >> 1) >> (width - 1 - filled);
        }
    }
    // 32 times the width: what is left is half of 64 bits, or nothing.
    if filled > 0 {
        to.extend_from_slice(&bits.to_le_bytes()[..4]);
    }
}

/// ULEB128.
fn put_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Zigzag, as ULEB128.
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

    /// A file of one column, read back by the library's reader: its values and levels.
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
