// The program muster, as a user runs it.
#include <csignal>

#include "muster/core/base/text_table.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/parallel/run/run_session.h"
#include "tests/examples/sandbox.h"
#include "tests/support/json_schema.h"
#include "tests/support/png.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/state_bits.h"

namespace muster {
namespace {

using test::contains;
namespace json = boost::json;

/// The program in a directory with `run.json`: 600 generated digits, two workers, one epoch on the CPU.
class Muster : public test::Sandbox {
 public:
  Muster() {
    const std::vector<std::string> small{"data.trainExamples=600", "data.testExamples=200",
                                         "training.epochs=1",      "training.pinThreads=false",
                                         "training.devices=cpu",   "listeners.progress=false"};
    write("run.json", RunFile::parse(succeeds("example").out, small).toJson());
  }

  /// Whether the program has an optional module.
  bool isBuiltWith(const std::string& module) const {
    const auto version = succeeds("--version").out;
    return version.find(module + " (") < version.find("without: ");
  }

  /// The state of a model file that the program wrote.
  std::vector<std::byte> bitsOf(const std::string& name) const {
    return test::stateBits(*Network::load(directory / name));
  }

  void draw(const std::string& path, int value, int width, int height) const {
    std::filesystem::create_directories((directory / path).parent_path());
    const std::vector pixels(static_cast<std::size_t>(width * height), static_cast<std::uint8_t>(value));
    test::writePng(directory / path, pixels, width, height);
  }
};

}  // namespace

TEST_CASE("muster train has the bits of the same training in C++, and of the run file that --json writes") {
  const Muster muster;
  muster.succeeds("train run.json");
  auto run = RunFile::read(muster.directory / "run.json");
  run.training.model = (muster.directory / "own.safetensors").string();
  RunSession(run).train();
  CHECK(muster.bitsOf("own.safetensors") == muster.bitsOf("model.safetensors"));
  for (const std::string options :
       {"--strategy synchronous", "--strategy-options updaterState=keep", "--strategy slowmo",
        "--strategy diloco --strategy-options every=2,rate=0.5"}) {
    CAPTURE(options);
    const auto first =
        muster.succeeds("train run.json --model a.safetensors --json result.json --epochs 2 " + options);
    CHECK_CONTAINS(first.err, "epoch 1: test accuracy");
    const auto again = muster.succeeds("train result.json --model b.safetensors --quiet");
    CHECK(again.err == "");  // no tests between epochs
    CHECK(muster.bitsOf("b.safetensors") == muster.bitsOf("a.safetensors"));
  }
}

TEST_CASE("a run is planned, trained and tested; its model is summarised and predicts") {
  const Muster muster;
  CHECK_CONTAINS(muster.succeeds("plan run.json --workers 3").out, "plan: 3 workers on cpu");
  CHECK(muster.directory.names() == std::set<std::string>{"run.json"});
  // Five batches of 128 are three iterations of two workers.
  const auto trained =
      muster.succeeds("train run.json --strategy diloco --averaging-frequency 4 --json result.json");
  CHECK_CONTAINS(trained.out, "\nnote: the replicas are merged at the end of each epoch only: it has 3 ");
  const auto result = json::parse(muster.read("result.json"));
  CHECK_CONTAINS(muster.succeeds("evaluate run.json").out, "200 examples");

  muster.succeeds("predict run.json --out p.csv");
  const auto rows = test::linesOf(muster.read("p.csv"));
  REQUIRE(rows.size() == 201);
  CHECK(rows[0].starts_with("example,label,prediction,probability,probability of 0,"));
  const auto right = std::ranges::count_if(
      rows, [](const std::string& row) { return csvFields(row).at(1) == csvFields(row).at(2); });
  CHECK(right == std::lround(200 * result.at("testAccuracy").as_double()));

  const auto summary = muster.succeeds("summary model.safetensors").out;
  CHECK_CONTAINS(summary, "431080");
  CHECK(muster.succeeds("summary run.json").out == summary);
  CHECK(json::parse(muster.succeeds("summary model.safetensors --json").out) ==
        result.at("configuration").at("network"));
}

TEST_CASE("muster plan writes nothing, and says that the checkpoints of an earlier training are in the way") {
  const Muster muster;
  const std::string all =
      " run.json --checkpoint-dir c --set data.validationExamples=100"
      " --set listeners.earlyStopping.monitor=loss"
      " --set listeners.earlyStopping.bestFile=best.safetensors" +
      std::string(test::kWithPage ? " --curves a.curves.jsonl" : "");
  const auto plan = muster.succeeds("plan" + all).out;
  muster.succeeds("train" + all);
  const auto names = muster.directory.names();
  const auto again = muster("plan" + all);
  CHECK(again.exit == 1);
  CHECK(again.out == plan);
  CHECK_CONTAINS(again.err, "muster: c: holds checkpoints of an earlier");
  CHECK(muster.directory.names() == names);
  CHECK_CONTAINS(muster.succeeds("plan --resume c" + all).out,
                 "\nresumes: c/checkpoint-epoch-0001.safetensors\n");
}

TEST_CASE("a resumption of what early stopping has ended says so, and what continues it") {
  const Muster muster;
  const std::string warning = "nothing was trained: early stopping had ended the training of ",
                    train =
                        "train run.json --quiet --epochs 4 --checkpoint-dir c --set "
                        "data.validationExamples=100 --set listeners.earlyStopping.minImprovement=0.99 --set "
                        "listeners.earlyStopping.restoreBest=false --set listeners.earlyStopping.patience=";
  CHECK_LACKS(muster.succeeds(train + "1").err, warning);
  const auto resumed = muster.succeeds(train + "1 --resume c").err;
  CHECK_CONTAINS(resumed, warning);
  CHECK_CONTAINS(resumed, "; a larger --set listeners.earlyStopping.patience=N continues it");
  CHECK_LACKS(muster.succeeds(train + "9 --resume c").err, warning);
}

TEST_CASE("muster convert writes weights there and back, models without what resumes them, and others") {
  const Muster muster;
  muster.succeeds("train run.json");
  const auto scores = muster.succeeds("evaluate run.json").out;
  const auto convert = [&](const std::string& line) {
    CHECK_CONTAINS(muster.succeeds("convert " + line).out, "written: ");
  };
  convert("model.safetensors --to weights --out w.safetensors --name conv1=features.0");
  CHECK(contains(muster.read("w.safetensors"), "\"features.0.weight\""));
  convert("w.safetensors --network run.json --name conv1=features.0 --out back.safetensors");
  CHECK(muster.succeeds("evaluate run.json back.safetensors").out == scores);

  CHECK(contains(muster.read("model.safetensors"), "\"updater.training."));
  convert("model.safetensors --out alone.safetensors");
  CHECK_FALSE(contains(muster.read("alone.safetensors"), "\"updater.training."));
  convert("alone.safetensors --to graph --out graph.safetensors");
  CHECK_NOTHROW(ComputationGraph::load(muster.directory / "graph.safetensors"));
  for (const char* same : {"alone.safetensors", "graph.safetensors"})
    CHECK(muster.bitsOf(same) == muster.bitsOf("model.safetensors"));
  convert("alone.safetensors --out network.json");
  CHECK(muster.read("network.json") == muster.succeeds("summary alone.safetensors --json").out);
  convert(
      "w.safetensors --network network.json --name conv1=features.0 --keep dense1 --out kept.safetensors");

  ComputationGraph resnet(resnet18(10, 3, {.imageSize = {32, 32}, .width = 4}));
  resnet.init();
  resnet.save(muster.directory / "r.safetensors");
  convert("r.safetensors --to weights --name torchvision --out torch.safetensors");
  for (const char* name : {"\"bn1.running_var\"", "\"layer1.0.conv1.weight\"", "\"fc.bias\""})
    CHECK(contains(muster.read("torch.safetensors"), name));
  convert("torch.safetensors --network r.safetensors --name torchvision --out again.safetensors");
  CHECK(muster.bitsOf("again.safetensors") == muster.bitsOf("r.safetensors"));

  if (muster.isBuiltWith("onnx")) {
    convert("alone.safetensors --out m.onnx");
    CHECK(contains(muster.read("m.onnx"), "conv1.weight"));
  } else {
    muster.refuses("convert alone.safetensors --out m.onnx", "was built without the module onnx");
  }
  if (!muster.isBuiltWith("dl4j"))
    return muster.refuses("convert model.safetensors --out model.zip", "was built without the module dl4j");
  convert("model.safetensors --out model.zip");
  convert("model.zip --out back.safetensors");
  CHECK(muster.succeeds("evaluate run.json back.safetensors").out == scores);
  muster.refuses("convert model.zip --out x.safetensors --shape 1,x", "--shape 1,x: expected up to");
  muster.refuses("convert model.zip --out x.safetensors --shape 4", "model.zip: cannot be converted: ", 1);
  muster.refuses("convert model.safetensors --out x.json --shape 4", "--shape is for models of Deepl");
  muster.refuses("convert model.zip --network run.json --out x.safetensors", "--network is for weights, and");
}

TEST_CASE("a model that cannot be converted gives one line with the reason") {
  const Muster muster;
  muster.succeeds("train run.json");
  for (const auto& [options, why] :
       {std::pair("", "muster: --out is missing: the file to write\n"),
        {"--out m.pt", "--out m.pt: its ending does not give the format"},
        {"--out m --to keras", "--to must be onnx, weights, model, graph, json or dl4j"},
        {"--out model.safetensors", "model.safetensors"},
        {"--out x.json --lengths", "--lengths works with ONNX only"},
        {"--out x.json --keep conv1", "--keep needs --network"},
        {"--out x.json --name a=b", "--name is for weights"},
        {"--out w.safetensors --to weights --name conv1", "--name conv1: expected"},
        {"--out w.safetensors --network run.json", "is a model of muster"}})
    muster.refuses(fmt::format("convert model.safetensors {}", options), why);
  muster.succeeds("convert model.safetensors --to weights --out w.safetensors");
  const std::string back = "convert w.safetensors --out x.safetensors ";
  muster.refuses(back, "holds no model of muster", 1);
  muster.refuses(back + "--network run.json --set network.inputShape=[]",
                 "--set network.inputShape=[1,28,28] says it");
  muster.refuses(back + "--network run.json --name dense1=fc", "it lacks: fc.weight, fc.bias", 1);
  muster.refuses("convert none.safetensors --out x.onnx", "none.safetensors", 1);
  muster.refuses("summary old.zip",
                 "muster: old.zip: a zip file, such as a model of Deeplearning4j: muster ");
}

TEST_CASE("--watch draws in a terminal, removes its drawing at the end, and writes lines elsewhere") {
  const Muster muster;
  {
    test::PseudoTerminal terminal(80, 24);
    auto launch = muster.launchOf("train run.json --watch --epochs 100000");
    launch.environment.insert({{"TERM", "xterm"}, {"NO_COLOR", "1"}, {"LC_ALL", "C"}});
    launch.terminal = terminal.name();
    test::Program training(MUSTER_PROGRAM, launch);
    // On a loaded machine the first drawings are of one worker, which has begun before the other.
    const auto drawn = terminal.takeUpTo("worker 1  score ") + terminal.takeUpTo("m merging");
    CHECK_CONTAINS(drawn, "worker 0  score ");
    for (const char* colour : {"\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m"}) CHECK_LACKS(drawn, colour);
    terminal.resize(30, 24);
    training.signal(SIGINT);
    CHECK(training.wait().exit == 130);
    const auto rest = terminal.take();
    const auto last = rest.rfind("\r\x1b[J");
    REQUIRE(last != std::string::npos);
    CHECK_LACKS(rest.substr(last), "worker ");  // an epoch's line may follow, with its score
  }
  const auto plain = muster.succeeds("train run.json --watch");
  CHECK_CONTAINS(plain.err, "epoch 1/1: score ");
  CHECK_LACKS(plain.err, "\x1b");
}

TEST_CASE("an error is in lines of the terminal's width, without breaking words, and elsewhere in one") {
  const Muster muster;
  const auto plain = muster("train run.json --strategy averagin").err;
  CHECK(std::ranges::count(plain, '\n') == 1);
  REQUIRE(plain.size() > 100);
  test::PseudoTerminal terminal(60, 24);
  auto launch = muster.launchOf("train run.json --strategy averagin");
  launch.terminal = terminal.name();
  CHECK(test::Program(MUSTER_PROGRAM, launch).wait().exit == 2);
  std::string joined;
  for (auto line : test::linesOf(terminal.take())) {
    REQUIRE(line.ends_with('\r'));  // the terminal's
    line.pop_back();
    CHECK(line.size() <= 60);
    joined += joined.empty() ? line : line.substr(1);  // indented by two, one of them the space between words
  }
  CHECK(joined + "\n" == plain);
}

TEST_CASE("--version prints the version, with its libraries and the optional modules left out") {
  const auto text = test::Sandbox().succeeds("--version").out;
  CHECK(text.starts_with("muster 0."));
  for (const std::string name : {"\ncompiler: ", "oneDNN ", "Boost ", "fmt ", "OpenSSL ", "zlib "})
    CHECK_MESSAGE(std::regex_search(text, std::regex(name + "[[:alnum:]]")), name);
  for (const char* part :
       {"CUDA", "nodes (", "dl4j (", "gloo (", "onnx (", "page (", "tensorboard (", "torch (", "\nGPUs: "})
    CHECK_CONTAINS(text, part);
}

TEST_CASE("fields of a module that was not built are refused before the data are read") {
  const Muster muster;
  for (const auto& [module, field] : {std::pair("page", "listeners.page=true"),
                                      {"page", "listeners.curves=a.curves.jsonl"},
                                      {"tensorboard", "listeners.tensorBoard=d"},
                                      {"nodes", "training.nodes=mpi"}}) {
    if (muster.isBuiltWith(module)) continue;
    for (const std::string command : {"train", "plan"})
      muster.refuses(command + " run.json --data mnist --set " + field, " was built without ");
  }
}

TEST_CASE("a folder of photographs of several sizes is learned; its model file alone predicts new ones") {
  const Muster muster;
  for (int i = 0; i < 10; ++i) {
    muster.draw(fmt::format("photos/dark/{}.png", i), 10 + 5 * i, 20 + i, 30 - i);
    muster.draw(fmt::format("photos/light/{}.Png", i), 250 - 5 * i, 40 - i, 10 + i);
  }
  muster.draw("new/deep/snow.png", 240, 50, 9);
  muster.draw("new/night.png", 30, 9, 50);
  muster.write("photos/light/notes.txt", "x");
  const auto example = muster.succeeds("example photos");
  CHECK_CONTAINS(example.err, "20 pictures read, and left out 1 .txt");
  std::filesystem::remove(muster.directory / "photos/light/notes.txt");
  for (const char* field : {"\"height\": 30", "\"width\": 20", "\"validationExamples\": 4"})
    CHECK_CONTAINS(example.out, field);
  CHECK_CONTAINS(muster.succeeds("example photos --grey").out, "\"grey\": true");
  muster.write("photos.json", example.out);
  const std::string train = "train photos.json --device cpu --pin-threads false --epochs ";
  const auto trained = muster.succeeds(train + "10");
  CHECK_CONTAINS(trained.out + trained.err, "accuracy 1.0000, macro F1 1.0000 on 4 examples");
  const auto held = test::linesOf(muster.succeeds("predict photos.json --on validation").out);
  REQUIRE(held.size() == 5);
  CHECK(held[0].starts_with("file,example,label,prediction,probability,"));
  for (std::size_t i = 1; i < held.size(); ++i) {
    const auto cells = csvFields(held[i]);  // sorted: ten are dark, ten light
    const auto number = std::stoi(cells.at(1));
    CHECK(cells.at(0) == fmt::format("{}/{}.{}", cells.at(2), number % 10, number < 10 ? "png" : "Png"));
    CHECK(cells.at(2) == (number < 10 ? "dark" : "light"));
  }
  const auto photo = muster.read("photos/dark/0.png");
  for (const std::string line : {"train photos.json --model", "predict photos.json --out"})
    muster.refuses(line + " photos/dark/0.png",
                   "photos/dark/0.png, a picture in the directory of data.train, photos: ");
  CHECK(muster.read("photos/dark/0.png") == photo);

  muster.draw("photos/dark/0.png", 11, 20, 30);
  muster.refuses("evaluate photos.json --on validation",
                 "was trained when photos had other examples, or other labels of them, or another libjpeg ",
                 1);
  std::filesystem::rename(muster.directory / "photos/dark", muster.directory / "photos/night");
  muster.succeeds(train + "1 --set training.initialModel=photos.safetensors --model second.safetensors");
  CHECK(muster.succeeds("predict second.safetensors new/night.png")
            .out.starts_with("file,prediction,probability,probability of light,probability of night\n"));
  std::filesystem::remove_all(muster.directory / "photos");

  muster.succeeds("predict photos.safetensors new --out all.csv");
  const auto text = muster.read("all.csv");
  CHECK(text.starts_with(
      "file,prediction,probability,probability of dark,probability of light\ndeep/snow.png,light,0."));
  CHECK_CONTAINS(text, "\nnight.png,dark,0.");
  muster.write("new/deep/half.png", muster.read("new/deep/snow.png").substr(0, 40));
  const auto most = muster("predict photos.safetensors new --out -");
  CHECK(most.exit == 1);
  // In another batch the last digits may differ.
  CHECK(most.out.starts_with(text.substr(0, text.find(",0."))));
  CHECK_CONTAINS(most.out, "\nnight.png,dark,0.");
  CHECK(std::ranges::count(most.out, '\n') == 3);
  CHECK_CONTAINS(most.err, "muster: new: 1 picture cannot be read; the other rows are written\n");

  const std::string byModel = "predict photos.safetensors ";
  muster.refuses(byModel, "a picture or a folder of pictures, as in");
  muster.refuses(byModel + "new --keep id", "--keep is for a table, and this model predicts pictures");
  muster.refuses(byModel + "new --out new/night.png", "a picture in the directory of the pictures, new");
  muster.refuses(byModel + "rows.csv", "photos.safetensors is a model of pictures, and rows.csv is a table");
}

TEST_CASE("muster example writes a run file for a newcomer's table, and mistakes get advice") {
  const Muster muster;
  std::string rows = "size;speed;kind\n";
  for (int i = 0; i < 40; ++i) rows += i % 2 == 0 ? "1000;-1;cat\n" : "2000;1;\"dog, big\"\n";
  muster.write("rows.csv", rows);
  muster.write("own.json", muster.succeeds("example rows.csv --separator ';'").out);
  const std::string train = "train own.json --device cpu --pin-threads false ";
  CHECK_CONTAINS(muster.succeeds(train + "--set data.test=rows.csv").out, "test: accuracy 1.0000");
  const auto predicted = muster.succeeds("predict own.json --on train").out;
  CHECK_CONTAINS(predicted, ",cat,cat,0.");
  CHECK_CONTAINS(predicted, ",\"dog, big\",\"dog, big\",0.");
  const auto evaluated = muster.succeeds("evaluate own.json --on train").out;
  CHECK_CONTAINS(evaluated, "\n     0 cat         17 ");
  CHECK_CONTAINS(evaluated, "\n     0 cat 17  0\n1 dog, big  0 17\n");
  CHECK(muster.succeeds("evaluate own.json rows.safetensors --on train").out == evaluated);
  // A model with another network than the run file's.
  muster.succeeds(train + "--set network=mlp --model other.safetensors --epochs 30");
  CHECK_CONTAINS(muster.succeeds("evaluate own.json other.safetensors --on train").out, "\n     0 cat ");
  CHECK_CONTAINS(muster.succeeds("plan own.json --set data.columns=size,speed").out,
                 "34 examples to train with (17 batches of 2), 6 to validate and 0 to test with");

  for (const auto& [line, why] : {
           std::pair("train rows.csv", "muster example rows.csv prints one for it"),
           {"train own.json --layers 2", "as in --set training.workers=4"},
           {"evaluate rows.safetensors", "is a model file; give the run file"},
           {"evaluate own.json --seed 3",
            "there is no option --seed: use --set data.seed=N --set network.seed=N\n"},
           {"evaluate own.json --workers 2",
            "there is no option --workers: muster train has it, and muster evaluate trains nothing\n"},
           {"evaluate rows.safetensors --device cpu",
            "there is no option --device: muster train has it, and muster evaluate trains nothing\n"},
           {"evaluate rows.safetensors --layers 2", "no option --layers; --help lists the options\n"},
           {"evaluate own.json --layers 2", "as in --set data.batch=100"},
           {"evaluate own.json",
            "data.test is empty); --on validation takes the examples held out from the "},
           {"evaluate own.json --set data.validationExamples=0", "data.test is empty); --on train takes"},
           {"evaluate own.json rows.csv", "unexpected argument rows.csv: after a run file"},
           {"evaluate own.json rows.safetensors --model rows.safetensors",
            "--model and rows.safetensors are two models"},
           {"example rows.csv --label kind --separator ';' --network convnet",
            "network: convnet is for pictures "},
           {"example --grey", "--grey is for a directory of images"},
           {"example churn.json", "muster: churn.json is named like a run file, and muster example needs "},
           {"example x/churn.safetensors", "is named like a model, and "},
           {"strategies --epochs 3", "there is no option --epochs; --help lists the options\n"},
       })
    muster.refuses(line, why);
}

TEST_CASE("muster shows the runs of a directory side by side, to browsers and as one file") {
  const Muster muster;
#ifdef MUSTER_WITH_PAGE
  const std::string run = "train run.json --group averaging --page --curves ";
  for (const std::string curves : {"runs/seed-1.curves.jsonl", "runs/seed-2.curves.jsonl"})
    CHECK_CONTAINS(muster.succeeds(run + curves).out, "page: http://127.0.0.1:");
  CHECK(muster.succeeds("page runs --out runs.html").out == "written: runs.html\n");
  const auto page = muster.read("runs.html");
  for (const char* part :
       {"\"run\":\"seed-1\"", "\"run\":\"seed-2\"", "\"group\":\"averaging\"", "test/accuracy"})
    CHECK_MESSAGE(contains(page, part), part);

  auto server = muster.start("page runs");
  CHECK(server.awaitText("ssh -L"));
  server.signal(SIGINT);
  const auto served = test::succeeded(server.wait());
  CHECK(served.out.starts_with("2 runs in runs; new ones are shown as they come. Ctrl-C ends the page.\n"));

  std::filesystem::rename(muster.directory / "runs/seed-1.curves.jsonl", muster.directory / "elsewhere");
  std::filesystem::create_symlink("../elsewhere", muster.directory / "runs/linked.curves.jsonl");
  const auto before = muster.read("elsewhere");
  muster.refuses("page runs --out elsewhere", "the run runs/linked.curves.jsonl and --out are the same file");
  CHECK(muster.read("elsewhere") == before);
  std::filesystem::create_directory(muster.directory / "empty");
  muster.refuses("page missing", "missing: is no directory", 1);
  muster.refuses("page empty --out x.html", "empty has no runs: files whose names end in");
  muster.refuses("page . --out x.curves.jsonl", "--out: x.curves.jsonl is named like a run, which would be ");
  muster.refuses("page runs --out x.html --port 1", "--port needs a page that is served");
#else
  muster.refuses("page .", "this program was built without the page, which needs");
#endif
}

TEST_CASE("completion for bash knows the commands, the options of each, and files") {
  const Muster muster;
  const auto completed = [&](const std::string& words, int at) {
    return muster
        .shell(fmt::format(
            "bash -c 'source {}; COMP_WORDS=({}); COMP_CWORD={}; _muster; echo ${{COMPREPLY[@]}}'",
            MUSTER_COMPLETION, words, at))
        .out;
  };
  CHECK(completed("muster p", 1) == "plan predict page\n");
  CHECK(completed("muster --v", 1) == "--version\n");
  CHECK(completed("muster train run.json --q", 3) == "--quiet\n");
  CHECK(completed("muster evaluate --", 2) == "--set --model --on --json --help\n");
  CHECK(completed("muster train ru", 2) == "run.json\n");
}

TEST_CASE(
    "a mistake in a command gives one line that says what is right, and options may come before the file") {
  const Muster muster;
  CHECK(muster("").exit == 2);
  for (const auto& [line, text] :
       {std::pair("trian run.json",
                  "muster: there is no command \"trian\"; the nearest is train; --help lists all\n"),
        {"run.json", "there is no command \"run.json\"; to train it: muster train run.json"},
        {"--versoin", "the nearest is --version"},
        {"compare_convergence --lr 1", "command \"compare_convergence\": it is muster compare, "},
        {"mnist_convnet", "there is no command \"mnist_convnet\": it is muster train, "},
        {"train", "muster: muster train needs an argument, a run file such as run.json; --help says more\n"},
        {"plan --workers 3 run.json more", "unexpected argument \"more\""},
        {"schema run.json", "unexpected argument \"run.json\""},
        {"train ''", "muster: muster train: the first argument is empty, perhaps an unset variable\n"},
        {"example ''", "muster: muster example: the first argument is empty, perhaps an unset variable\n"},
        {"page ''", "muster: muster page: the first argument is empty, perhaps an unset variable\n"}})
    muster.refuses(line, text);
  const std::string longName(256, 'x');
  muster.refuses("example " + longName, "muster: " + longName + ": cannot be read: File name too long\n", 1);
  muster.refuses("train none.json", "none.json", 1);

  // Options may come before the file, which may begin with a byte order mark.
  const auto usual = muster.succeeds("plan run.json --workers 3").out;
  muster.write("marked.json", "\xEF\xBB\xBF" + muster.read("run.json"));
  for (const std::string same : {"plan --workers 3 run.json", "plan marked.json --workers 3"})
    CHECK(muster.succeeds(same).out == usual);
  CHECK(muster.succeeds("summary --json run.json").out == muster.succeeds("summary run.json --json").out);
}

TEST_CASE("every command has a help text, which fails as other results do if standard output is closed") {
  const Muster muster;
  const auto help = muster.succeeds("--help").out;
  for (const std::string command : {"train", "plan", "evaluate", "predict", "summary", "convert", "compare",
                                    "strategies", "example", "schema"}) {
    CAPTURE(command);
    CHECK_CONTAINS(help, "\n  " + command + " ");
    const auto text = muster.succeeds(command + " --help").out;
    CHECK(text.starts_with("Usage: muster " + command + " "));
    CHECK(muster.succeeds(command + " -h").out == text);
  }
  CHECK_CONTAINS(muster.succeeds("help compare").out, "\n  muster compare run.json --arm averaging ");
  for (const std::string command : {"example", "schema", "strategies", "plan run.json", "summary run.json",
                                    "--version", "--help", "help train", "train --help"}) {
    CAPTURE(command);
    CHECK(test::errorOf(muster.shell("muster " + command + " >&-"), 1) ==
          "muster: standard output could not be written: it is closed\n");
  }
}

TEST_CASE("run files that muster ships and prints are valid by the schema that it prints") {
  const Muster muster;
  const test::JsonSchema schema(json::parse(muster.succeeds("schema").out));
  muster.write("rows.csv", "size,kind\n1.5,a\n2.5,b\n4.5,a\n8.5,b\n");
  for (const auto* const kind : {"cat", "dog"})
    for (int i = 0; i < 4; ++i) muster.draw(fmt::format("pictures/{}/{}.png", kind, i), 40 * i, 8, 8);
  for (const std::string arguments :
       {"", " mnist", " rows.csv", " rows.csv --label size --regression", " pictures", " --network mlp",
        " --network convnet", " --network resnet18"}) {
    CAPTURE(arguments);
    CHECK(schema.problem(json::parse(muster.succeeds("example" + arguments).out)) == "");
  }
  const auto shipped = std::filesystem::path(MUSTER_MNIST_RUN).parent_path();
  int files = 0;
  for (const auto& folder : {shipped, shipped / "compare"})
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() != ".json") continue;
      CAPTURE(file.path().string());
      CHECK(schema.problem(json::parse(test::readFile(file.path()))) == "");
      CHECK_NOTHROW(RunFile::read(file.path()));
      ++files;
    }
  CHECK(files == 5);
}

TEST_CASE("results go to standard output where - or /dev/stdout is the file, and models do not") {
  const Muster muster;
  muster.succeeds("train run.json");
  const auto names = muster.directory.names();
  const auto predicted = muster.succeeds("predict run.json").out;
  for (const std::string out : {"-", "/dev/stdout"}) {
    CHECK(muster.succeeds("predict --out " + out + " run.json").out == predicted);
    const auto network = muster.succeeds("convert model.safetensors --to json --out " + out).out;
    CHECK(json::parse(network).at("layers").is_array());
    const auto trained = muster.succeeds("train run.json --json " + out);
    CHECK(json::parse(trained.out).at("epochsFinished") == 1);
    CHECK_CONTAINS(trained.err, "saved: model.safetensors");
    muster.refuses("convert model.safetensors --to model --out " + out,
                   "muster: --out: " + out + " is standard output; give the name of a file");
    muster.refuses("train run.json --model " + out, "muster: training.model: ");
  }
  CHECK(muster.directory.names() == names);
}

}  // namespace muster
