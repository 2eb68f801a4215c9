// muster predict: a trained network's predictions as CSV.
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/muster/paths.h"
#include "examples/muster/standard_streams.h"
#include "examples/muster/trained.h"
#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/text_table.h"
#include "muster/core/data/output_names.h"
#include "muster/core/eval/detail/rows.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/model_file.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/picture_model.h"
#include "muster/datasets/prediction_csv.h"
#include "muster/datasets/table.h"
#include "muster/datasets/table_model.h"

namespace program {
namespace {

using namespace muster;

struct PredictOptions : TrainedOptions {
  std::vector<std::string> keep;
};

/// The description of a run's outputs, with numbers for those without names.
InputDescription outputsOf(const Trained& trained, std::int64_t width) {
  auto described = trained.network->inputDescription();
  if (described.empty()) described = trained.data.description;
  if (!outputNames(described).empty()) return described;
  const bool classified = trained.network->task() == Task::Classification;
  for (std::int64_t o = 0; o < (classified ? std::max<std::int64_t>(width, 2) : width); ++o)
    if (classified)
      described.classes.push_back(fmt::format("{}", o));
    else
      described.targets.push_back({.name = fmt::format("{}", o)});
  return described;
}

/// Whether an example has a single label.
bool isOneLabel(const Tensor& labels, const Predictions& predictions) {
  return labels.dtype() == DType::Int64 || !predictions.classes.empty() || predictions.names.size() == 1;
}

/// The header of what `labelText` writes.
std::string labelHeader(const Tensor& labels, const Predictions& predictions) {
  if (isOneLabel(labels, predictions)) return "label";
  std::vector<std::string> columns;
  for (const auto& name : predictions.names) columns.push_back(csvField(fmt::format("label of {}", name)));
  return fmt::format("{}", fmt::join(columns, ","));
}

/// The label of an example by name, or numbers in their own units, as float32 has them; empty for shares of
/// classes.
std::string labelText(const InputDescription& described, const Tensor& labels, bool classified,
                      std::int64_t example) {
  const bool indices = labels.dtype() == DType::Int64;
  if (indices || classified) {
    const auto label =
        indices ? labels.data<std::int64_t>()[example] : detail::oneHotClass(detail::rowOf(labels, example));
    if (label < 0) return {};
    return label < std::ssize(described.classes)
               ? csvField(described.classes[static_cast<std::size_t>(label)])
               : fmt::format("{}", label);
  }
  std::vector<float> numbers;
  for (const float label : labels.rows(example, example + 1).span<float>()) {
    const auto target = described.targets.empty() ? TargetColumn{} : described.targets[numbers.size()];
    numbers.push_back(static_cast<float>(target.mean + target.scale * label));
  }
  return fmt::format("{}", fmt::join(numbers, ","));
}

/// The table that `--on` names, for columns to keep and the numbers of a regression; nothing if it is needed
/// for neither. @throws InvalidArgument for columns to keep if the data are no table.
std::optional<Table> tableOf(const DataSource& data, const PredictOptions& options) {
  require(options.keep.empty() || data.type == "csv", "--keep is for a table, and the data are of type {}",
          data.type);
  if (data.type != "csv" || (options.keep.empty() && !data.regression)) return {};
  const bool own = options.on == "test" && !data.test.empty();
  return readTable(own ? data.test : data.train, data.tableFormat());
}

/// The number of a table's row that is to be predicted, as the table has it.
std::string targetText(const Table& table, std::int64_t row, const TargetColumn& target) {
  const auto number = numberIn(table.cell(row, *table.find(target.name)), target.text);
  return fmt::format("{}", number.value());
}

/// @throws NonFinitePrediction naming an example by its number in the file.
/// @param numbers  [example of the batch]
void requireFinite(const Tensor& outputs, const Batch& batch, std::span<const std::int64_t> numbers,
                   const InputDescription& described) {
  for (std::int64_t i = 0; i < outputs.shape()[0]; ++i)
    detail::requireFinitePredictions(detail::rowOf(outputs, i), numbers[static_cast<std::size_t>(i)],
                                     {outputs.shape()[0]}, "predict", [&] {
                                       if (batch.features.size() != 1) return std::string();
                                       return detail::featuresRemark(batch.features.front().value, i,
                                                                     described.featureNames());
                                     });
}

/// The picture of each example by its number, relative to the directory that `--on` names; empty if the data
/// are no directory of pictures.
std::span<const std::string> filesOf(const Trained& trained, const std::string& on) {
  return on == "test" && !trained.run.data.test.empty() ? trained.data.testFiles : trained.data.files;
}

/// A row for each example of a run's data: its file, if it has one of its own, its number in their file,
/// label and prediction.
std::string predictionsOf(const Trained& trained, const PredictOptions& options) {
  DataSetIterator& data = trained.on(options.on);
  const auto& rows = trained.data.rows;
  const auto& numbers = options.on == "test"         ? rows.test
                        : options.on == "validation" ? rows.validation
                                                     : rows.train;
  const auto table = tableOf(trained.run.data, options);
  const auto files = filesOf(trained, options.on);
  const auto kept = table ? std::optional(KeptColumns(*table, options.keep)) : std::nullopt;
  std::string text;
  Batch batch, read;
  Tensor outputs;
  auto number = numbers.begin();
  data.reset(0);
  while (data.next(read)) {
    read.gatherInto(batch);
    static_cast<Model&>(*trained.network).output(batch, outputs);
    require(outputs.shape().rank() == 2,
            "a row is written for each example, and this network has an output at each step: muster evaluate "
            "tests it, and in a program Network::output gives the outputs of all steps");
    const auto described = outputsOf(trained, outputs.shape()[1]);
    requireFinite(outputs, batch, {number, numbers.end()}, described);
    const auto predictions = namedOutputs(described, outputs, trained.network->task());
    const Tensor& labels = batch.labels.front().value;
    const Tensor weights = batch.lossMask(outputs.shape(), trained.network->outputName());
    if (text.empty()) {
      const auto header = fmt::format("{}example,{},{}", files.empty() ? "" : "file,",
                                      labelHeader(labels, predictions), csvHeader(predictions));
      text = (kept ? kept->header(header) : header) + "\n";
    }
    const std::string without(isOneLabel(labels, predictions) ? 0 : predictions.names.size() - 1, ',');
    for (std::int64_t i = 0; i < batch.examples(); ++i, ++number)
      text +=
          fmt::format("{}{}{},{},{}\n", kept ? kept->row(*number) : "",
                      files.empty() ? "" : csvField(files[static_cast<std::size_t>(*number)]) + ",", *number,
                      detail::isMasked(weights, i) ? without
                      : table && !described.targets.empty()
                          ? targetText(*table, *number, described.targets.front())
                          : labelText(described, labels, !predictions.classes.empty(), i),
                      csvRow(predictions, i));
  }
  return text;
}

/// @throws InvalidArgument for a picture, if the model is of a table, and for a table, if it is of pictures.
void requireKind(const std::string& model, bool ofPictures, const std::filesystem::path& data) {
  const bool directory = fileTypeOf(data) == std::filesystem::file_type::directory;
  const auto ending = data.extension();
  const bool table = ending == ".csv" || ending == ".tsv";
  require(ofPictures || (!directory && !isPicture(data)),
          "{} is a model of a table, and {} is a {}; it predicts the rows of a table, as in new.csv", model,
          data.string(), directory ? "directory" : "picture");
  require(!ofPictures || directory || !table,
          "{} is a model of pictures, and {} is a table; it predicts a picture or a folder of pictures",
          model, data.string());
}

/// What a command writes.
struct Predicted {
  std::string text;
  std::size_t without = 0;  ///< pictures that cannot be read; the log has named them
};

Predicted byModel(const Call& call, const PredictOptions& options) {
  require(call.others.size() == 1,
          "muster predict {} needs what it shall predict: the file of the rows, a picture or a folder of "
          "pictures, as in muster predict {} new.csv",
          call.file, call.file);
  const auto& data = call.others.front();
  Paths paths;
  paths.reads("the model", call.file);
  if (fileTypeOf(data) == std::filesystem::file_type::directory)
    paths.readsPictures("the pictures", data);
  else
    paths.reads("the data", data);
  paths.writesResult("--out", options.out, Content::Predictions);
  paths.check();
  const auto description = readInputDescription(call.file);
  if (!description.empty()) requireKind(call.file, description.pictures.has_value(), data);
  if (description.pictures) {
    require(options.keep.empty(), "--keep is for a table, and this model predicts pictures");
    const auto predictions = PictureModel::load(call.file).predict(data);
    return {predictionsCsv(predictions), predictions.unreadable.size()};
  }
  auto model = TableModel::load(call.file);
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"set header to false (data.header=false)",
       "write them above the rows: this model finds its columns by their names"}};
  const auto table = sayErrors([&](std::string text) { return withOptions(std::move(text), kNames); },
                               [&] { return readTable(data, model.description().format); });
  return {predictionsCsv(model, table, options.keep)};
}

}  // namespace

int predict(const Call& call) {
  PredictOptions options;
  CommandLine line(
      "Writes a trained network's predictions as CSV: the most probable class, its probability and those of\n"
      "all classes, or the predicted numbers. A model file alone predicts the rows of a new table, whose\n"
      "columns are found by their names; a run file predicts its own data, beside their labels and their\n"
      "numbers in their file, from 0 (of a table without its header). A label is empty if its weight is 0\n"
      "(labelsMask), as it does not count in a test, and if it is shares of classes.\n\n"
      "  muster predict model.safetensors new.csv --keep id --out predictions.csv\n"
      "  muster predict model.safetensors photographs --out predictions.csv     pictures, if it learned "
      "pictures\n"
      "A picture of a folder that cannot be read is named, has no row, and makes the exit status 1.\n"
      "  muster predict run.json --out predictions.csv\n");
  describeTrained(line, options);
  line.list("keep", options.keep, "NAME",
            "a column of the table to repeat in the output, or several: --keep id,'\"name, first\"'. May be "
            "given several times");
  line.add("out", options.out, "FILE", "the file to write; -: standard output, the default");
  if (!readOptions(line, call)) return 0;
  Predicted predicted;
  if (isModelFile(call.file)) {
    line.refuse({"set", "model", "on"}, "is for a run file, and this is a model file");
    predicted = byModel(call, options);
  } else {
    const auto trained = sayErrors(asSets, [&] { return Trained(call, options); });
    predicted.text = predictionsOf(trained, options);
  }
  if (options.out.empty())
    printResult(printableLines(predicted.text));
  else
    writeResult(options.out, predicted.text);
  if (predicted.without > 0)
    throw FileError(call.others.front(), fmt::format("{} cannot be read; the other rows are written",
                                                     plural(predicted.without, "picture")));
  return 0;
}

}  // namespace program
