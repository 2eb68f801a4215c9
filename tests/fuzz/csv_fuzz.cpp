// Tables of numbers as CSV: the first byte chooses the options.
#include "muster/datasets/csv.h"

#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

CsvOptions optionsOf(std::uint8_t bits) {
  return {.header = (bits & 1) != 0,
          .label = (bits & 2) != 0 ? "y" : "",
          .separator = (bits & 4) != 0 ? ';' : ',',
          .regression = (bits & 8) != 0,
          .classes = (bits & 16) != 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{}};
}

void run(ByteSpan bytes) {
  static const std::filesystem::path path = "table.csv";
  if (bytes.empty()) return;
  const auto options = optionsOf(bytes[0]);
  const std::string_view text = textOf(bytes.subspan(1));
  CsvTable table;
  if (!isRead(path, [&] { table = parseCsv(text, options, path); })) return;
  const std::int64_t rows = table.features.shape()[0], columns = table.features.shape()[1];
  expect(rows >= 1 && rows * (columns + 1) <= static_cast<std::int64_t>(text.size()) + 1,
         "a table has more fields than the text has room for");
  expect(static_cast<std::int64_t>(table.columns.size()) == columns, "a column has no name");
  expect(std::ranges::all_of(table.features.span<float>(), [](float x) { return std::isfinite(x); }),
         "a feature is not finite");
  expect(table.labels.shape()[0] == rows, "labels are not as many as rows");
  if (options.regression) {
    expect(std::ranges::all_of(table.labels.span<float>(), [](float x) { return std::isfinite(x); }),
           "a label is not finite");
    return;
  }
  const auto classes = static_cast<std::int64_t>(table.classes.size());
  expect(std::ranges::all_of(table.labels.span<std::int64_t>(),
                             [&](std::int64_t label) { return label >= 0 && label < classes; }),
         "a label is out of range");
}

Bytes input(char options, std::string_view text) {
  return bytesOf(std::string(1, options).append(text));
}

std::vector<Bytes> seeds() {
  return {input(1, "x,\"a \"\"quoted\"\" name\",y\n1,2.5,cat\n-3e4,\"7\",dog\r\n"),
          input(0, "1,2,0\n3,4,1\n"), input(15, "x;z;y\n1;2;0.5\n"), input(19, "\xEF\xBB\xBFy,x\na,1\nb,2")};
}

/// Inserts parts of tables, and numbers at the limits of the reader.
void mutate(Bytes& bytes, Draw& draw) {
  static constexpr auto kPieces = std::to_array<std::string_view>(
      {",",      ";",   "\n",  "\r\n",  "\r",     "\"",    "\"\"",  "\"a\nb\"", "0",           "-0",   "1e38",
       "3.5e38", "nan", "inf", "1e999", "1e-999", "0x1p3", "1.5.2", " 1",       "1 ",          "\xFF", "y",
       "a",      "b",   ",,",  "+1",    "1e",     ".",     "-",     ".5",       "\xEF\xBB\xBF"});
  if (bytes.empty()) bytes.push_back(1);
  if (draw.oneIn(8)) bytes[0] = static_cast<std::uint8_t>(draw.below(32));
  for (std::size_t times = 1 + draw.below(3); times-- > 0;) {
    const auto at = bytes.begin() + 1 + static_cast<std::ptrdiff_t>(draw.below(bytes.size()));
    const auto piece = draw.of(kPieces);
    if (draw.oneIn(4) && at != bytes.end())
      bytes.erase(at);
    else
      bytes.insert(at, piece.begin(), piece.end());
  }
}

}  // namespace

const Target targets::csv{"csv", &run, &seeds, &mutate};

}  // namespace muster::fuzz
