#include "tests/fuzz/target.h"

#include <sstream>

namespace muster::fuzz {

std::uint64_t Draw::bits() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

std::int64_t Draw::hostile() {
  constexpr std::int64_t kOne = 1, kMost = std::numeric_limits<std::int64_t>::max();
  static constexpr std::array kEdges{
      kOne - 1,   kOne << 8,        kOne << 15, (kOne << 16) + 1, (kOne << 31) - 1, kOne << 31, kOne << 32,
      kOne << 40, (kOne << 53) + 1, kOne << 56, (kOne << 56) + 1, (kOne << 61) + 1, kOne << 62, kMost};
  if (oneIn(2)) return static_cast<std::int64_t>(below(20)) - 2;
  const std::int64_t edge = of(kEdges) - static_cast<std::int64_t>(below(2));
  return oneIn(4) ? -edge : edge;
}

void mutateBytes(Bytes& bytes, Draw& draw) {
  for (std::size_t times = 1 + draw.below(4); times-- > 0;) {
    const std::size_t at = draw.below(bytes.size() + 1);
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t rest = bytes.size() - at, count = 1 + draw.below(8);
    switch (draw.below(5)) {
      case 0:
        if (rest > 0) bytes[at] ^= static_cast<std::uint8_t>(1 << draw.below(8));
        break;
      case 1:
        if (rest > 0) bytes[at] = static_cast<std::uint8_t>(draw.bits());
        break;
      case 2:
        bytes.insert(place, count, static_cast<std::uint8_t>(draw.bits()));
        break;
      case 3:
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(std::min(rest, count)));
        break;
      default: {
        const Bytes copied(place, place + static_cast<std::ptrdiff_t>(std::min(rest, 4 * count)));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(draw.below(bytes.size() + 1)),
                     copied.begin(), copied.end());
      }
    }
  }
}

Sweep sweepOf(std::vector<Bytes> inputs) {
  const auto size = inputs.size();
  return {size, [all = std::move(inputs)](std::size_t number) { return all[number]; }};
}

Sweep joined(std::vector<Sweep> parts) {
  std::size_t size = 0;
  for (const auto& part : parts) size += part.size;
  return {size, [all = std::move(parts)](std::size_t number) {
            auto part = all.begin();
            for (; number >= part->size; ++part) number -= part->size;
            return part->at(number);
          }};
}

Bytes bytesOf(std::string_view text) {
  return {text.begin(), text.end()};
}

std::string_view textOf(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

void defect(const std::string& what) {
  throw std::logic_error(what);
}

void expect(bool condition, std::string_view what) {
  if (!condition) defect(std::string(what));
}

void expectReadable(std::string_view message) {
  expect(!message.empty(), "an error says nothing");
}

}  // namespace muster::fuzz
