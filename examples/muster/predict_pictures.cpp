// muster predict with a model file and pictures.
#include <fmt/format.h>

#include <algorithm>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/support/command_line.h"
#include "examples/support/paths.h"
#include "examples/support/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/io/input_file.h"
#include "muster/datasets/picture_model.h"

namespace program {
namespace {

using namespace muster;

/// A field of a CSV file, quoted if necessary.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted.append("\"");
}

/// A row for each picture: its file, the predicted class, its probability and those of all classes.
std::string textOf(const PicturePredictions& predictions) {
  std::string text = "file,prediction,probability";
  for (const auto& name : predictions.names) text += "," + field("probability of " + name);
  text += '\n';
  const auto width = predictions.names.size();
  const auto all = predictions.probabilities.span<float>();
  for (std::size_t i = 0; i < predictions.files.size(); ++i) {
    const auto row = all.subspan(i * width, width);
    text += fmt::format("{},{},{}", field(predictions.files[i]), field(predictions.classes[i]),
                        std::ranges::max(row));
    for (const float probability : row) text += fmt::format(",{}", probability);
    text += '\n';
  }
  return text;
}

}  // namespace

int predictPictures(const Call& call) {
  std::filesystem::path out;
  example::CommandLine line(
      "Writes a trained network's predictions for pictures as CSV: each file's most probable class, its\n"
      "probability and those of all classes. The model's file says how pictures become its inputs.\n\n"
      "  muster predict model.safetensors new.jpg\n"
      "  muster predict model.safetensors folder --out predictions.csv\n");
  line.group("Options");
  line.add("out", out, "FILE", "the file to write; -: standard output, the default");
  if (!readOptions(line, call)) return 0;
  require(call.others.size() == 1,
          "muster predict {} needs a picture or a folder of pictures, as in muster predict {} new.jpg",
          call.file, call.file);
  const auto& pictures = call.others.front();
  example::Paths paths;
  paths.reads("the model", call.file);
  if (fileTypeOf(pictures) == std::filesystem::file_type::directory)
    paths.readsPictures("the pictures", pictures);
  else
    paths.reads("the picture", pictures);
  paths.writesResult("--out", out);
  paths.check();
  const auto text = textOf(PictureModel::load(call.file).predict(pictures));
  if (out.empty())
    example::printResult(printableLines(text));
  else
    example::writeResult(out, text);
  return 0;
}

}  // namespace program
