#pragma once

#include <bit>

#include "tests/support/standard.h"
#include "tests/support/temporary_directory.h"

// Reads event files without the library's code and without protobuf.

namespace muster::test {

inline std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

inline std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282ead8U;
}

template <typename T>
T littleEndian(std::string_view bytes) {
  T value = 0;
  std::memcpy(&value, bytes.substr(0, sizeof(T)).data(), sizeof(T));
  return value;
}

/// The records of a file. @throws std::runtime_error for a checksum that is wrong or a record cut off.
inline std::vector<std::string> recordsOf(const std::filesystem::path& file) {
  const std::string all = readFile(file);
  std::vector<std::string> records;
  for (std::string_view rest = all; !rest.empty();) {
    if (rest.size() < 16) throw std::runtime_error("a record is cut off");
    const auto size = littleEndian<std::uint64_t>(rest);
    if (littleEndian<std::uint32_t>(rest.substr(8)) != masked(crc32c(rest.substr(0, 8))))
      throw std::runtime_error("the checksum of a length is wrong");
    if (rest.size() - 16 < size) throw std::runtime_error("a record is cut off");
    records.emplace_back(rest.substr(12, size));
    if (littleEndian<std::uint32_t>(rest.substr(12 + size)) != masked(crc32c(records.back())))
      throw std::runtime_error("the checksum of a record is wrong");
    rest.remove_prefix(size + 16);
  }
  return records;
}

/// A protobuf message: its fields by number.
struct Message {
  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto key = varint(bytes);
      auto& values = fields[static_cast<int>(key >> 3)];
      if ((key & 7) == 0) {
        const auto number = varint(bytes);
        values.emplace_back(reinterpret_cast<const char*>(&number), sizeof number);
        continue;
      }
      const std::size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint(bytes);
      if (size > bytes.size()) throw std::runtime_error("a field is cut off");
      values.emplace_back(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  }
  static std::uint64_t varint(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      if (bytes.empty() || shift > 63) throw std::runtime_error("a number is cut off");
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  bool has(int field) const { return fields.contains(field); }
  const std::string& text(int field) const { return fields.at(field).front(); }
  Message message(int field) const { return Message(text(field)); }
  template <typename T>
  T number(int field) const {
    return has(field) ? std::bit_cast<T>(
                            littleEndian<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(
                                text(field)))
                      : T{};
  }

  std::map<int, std::vector<std::string>> fields;
};

/// One scalar of a file.
struct Scalar {
  std::int64_t step = 0;
  float value = 0;
  bool operator==(const Scalar&) const = default;
};

inline std::map<std::string, std::vector<Scalar>> scalarsOf(const std::filesystem::path& file) {
  std::map<std::string, std::vector<Scalar>> all;
  for (const auto& record : recordsOf(file)) {
    const Message event(record);
    if (!event.has(5)) continue;
    const Message value = event.message(5).message(1);
    if (value.has(2)) all[value.text(1)].push_back({event.number<std::int64_t>(2), value.number<float>(2)});
  }
  return all;
}

}  // namespace muster::test
