#include "muster/datasets/file_bytes.h"

#include <algorithm>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/input_file.h"

namespace muster {
namespace {

namespace io = boost::iostreams;

/// Receives the unpacked bytes, up to `most`.
struct Sink {
  using char_type = char;
  using category = io::sink_tag;
  std::vector<std::uint8_t>* bytes;
  std::size_t most;
  const std::filesystem::path* path;
  std::streamsize write(const char* data, std::streamsize size) {
    if (static_cast<std::size_t>(size) > most - bytes->size())
      throw FileError(*path, fmt::format("unpacks to more than {} bytes, the most that is read from a gzip "
                                         "file; unpack it first",
                                         most));
    bytes->insert(bytes->end(), data, data + size);
    return size;
  }
};

/// The unpacked size stored in the file's last four bytes, limited by deflate's compression ratio: a damaged
/// size must not reserve unlimited memory.
std::size_t promisedSize(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kMostPerByte = 1032;  // zlib's technical notes
  if (bytes.size() < 18) return 0;
  const auto* tail = bytes.data() + bytes.size() - 4;
  const std::size_t promised =
      tail[0] | std::size_t{tail[1]} << 8 | std::size_t{tail[2]} << 16 | std::size_t{tail[3]} << 24;
  return std::min(promised, bytes.size() * kMostPerByte);
}

std::string_view problemOf(const io::gzip_error& error) {
  switch (error.error()) {
    case io::gzip::bad_crc:
      return "the contents do not have the checksum that the file gives";
    case io::gzip::bad_header:
      return "something that is not gzip follows the data, or the header is damaged";
    case io::gzip::bad_footer:
      return "it is truncated";
    default:
      return error.zlib_error_code() == io::zlib::buf_error ? "it is truncated"
                                                            : "the compressed data are damaged";
  }
}

}  // namespace

std::vector<std::uint8_t> readFile(const std::filesystem::path& path) {
  InputFile file(path);
  std::vector<std::uint8_t> bytes(file.size());
  file.read(bytes.data(), bytes.size());
  return bytes;
}

bool isGzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

std::vector<std::uint8_t> unpackGzip(std::span<const std::uint8_t> bytes, const std::filesystem::path& path,
                                     std::size_t most) {
  if (!isGzip(bytes))
    throw FileError(path, fmt::format("not a gzip file, its {} bytes begin otherwise", bytes.size()));
  std::vector<std::uint8_t> contents;
  contents.reserve(std::min(promisedSize(bytes), most));
  try {
    io::filtering_streambuf<io::input> source;
    source.push(io::gzip_decompressor());
    source.push(io::array_source(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    io::copy(source, Sink{&contents, most, &path}, 1 << 16);
  } catch (const io::gzip_error& error) {
    throw FileError(path, fmt::format("damaged gzip file of {} bytes: {}", bytes.size(), problemOf(error)));
  } catch (const BOOST_IOSTREAMS_FAILURE& error) {
    throw FileError(path, fmt::format("damaged gzip file of {} bytes: {}", bytes.size(), error.what()));
  }
  return contents;
}

FileContents readContents(const std::filesystem::path& path, std::size_t most) {
  auto bytes = readFile(path);
  if (isGzip(bytes)) bytes = unpackGzip(bytes, path, most);
  return {path, std::move(bytes)};
}

}  // namespace muster
