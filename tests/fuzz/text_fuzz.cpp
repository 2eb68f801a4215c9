// Texts in UTF-8, plain or gzip, as char_lstm reads them: decoding and encoding gives the same text.
#include "muster/datasets/text.h"

#include "muster/core/data/batch.h"
#include "muster/datasets/file_bytes.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

void readWindows(const std::shared_ptr<const CharacterText>& text, const std::filesystem::path& path) {
  isRead(path, [&] {
    CharacterIterator windows(text, 3, 2);
    Batch batch;
    std::int64_t seen = 0;
    windows.reset(0);
    while (windows.next(batch)) seen += batch.features.front().value.shape()[0];
    expect(seen == *windows.examples(), "the windows are not as many as were told");
  });
}

void run(ByteSpan bytes) {
  static FuzzedFile file;
  const auto& path = file.of(bytes);
  std::shared_ptr<const CharacterText> text;
  if (!isRead(path, [&] { text = readCharacterText(path); })) return;
  std::vector<char32_t> characters;
  for (const auto index : text->indices) characters.push_back(text->vocabulary.character(index));
  const Bytes contents = isGzip(bytes) ? unpackGzip(bytes, path) : Bytes(bytes.begin(), bytes.end());
  std::string_view expected = textOf(contents);
  if (expected.starts_with("\xEF\xBB\xBF")) expected.remove_prefix(3);
  expect(encodeUtf8(characters) == expected, "what was read is another text");
  readWindows(text, path);
}

std::vector<Bytes> seeds() {
  return {bytesOf("The cat sat on the mat.\n"),
          bytesOf("\xEF\xBB\xBFGr\xC3\xBC\xC3\x9F\x65 \xE2\x82\xAC \xF0\x9F\x98\x80!"), bytesOf("")};
}

/// Inserts characters at the limits of validity, and just beyond.
void mutate(Bytes& bytes, Draw& draw) {
  static constexpr auto kPieces = std::to_array<std::string_view>(
      {"\x7F",         "\xC2\x80",         "\xDF\xBF",         "\xE0\xA0\x80",     "\xED\x9F\xBF",
       "\xEE\x80\x80", "\xEF\xBF\xBF",     "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "\xC0\x80",
       "\xC1\xBF",     "\xE0\x9F\xBF",     "\xED\xA0\x80",     "\xED\xBF\xBF",     "\xF0\x8F\xBF\xBF",
       "\x80",         "\xF4\x90\x80\x80", "\xF8\x88\x80\x80", "\xE2\x82",         "\xEF\xBB\xBF"});
  for (std::size_t times = 1 + draw.below(3); times-- > 0;) {
    const auto piece = draw.of(kPieces);
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(draw.below(bytes.size() + 1)), piece.begin(),
                 piece.end());
  }
  if (draw.oneIn(4)) mutateBytes(bytes, draw);
}

}  // namespace

const Target targets::text{"text", &run, &seeds, &mutate};

}  // namespace muster::fuzz
