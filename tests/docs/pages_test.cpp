// The blocks of the pages are further sources of this program (see page_blocks.cmake).

#include "tests/docs/fixtures.h"
#include "tests/support/png.h"

namespace muster_pages {

with_files::with_files() {
  std::ofstream("flowers.csv")
      << "petal,sepal,kind\n1.4,0.2,setosa\n4.7,1.4,versicolor\n1.3,0.2,setosa\n4.5,1.5,versicolor\n";
  for (const std::string pet : {"cat", "dog"}) {
    std::filesystem::create_directories("pets/" + pet);
    for (const std::string number : {"1", "2", "3", "4", "5"})
      muster::test::writePng("pets/" + pet + "/" + number + ".png",
                             std::vector<std::uint8_t>(8 * 8 * 3, pet == "cat" ? 100 : 200), 8, 8,
                             PictureColour::Rgb);
  }
}

with_run::with_run() {
  std::ofstream("run.json")
      << R"({"format": "muster-run/1", "data": {"type": "generated", "trainExamples": 200,
      "testExamples": 50}, "network": "mlp", "listeners": {"progress": false}})";
}

with_customers::with_customers() {
  std::ofstream table("customers.csv");
  table << "id,region,joined,income,visits,stays\n";
  for (int i = 1; i <= 100; ++i)
    table << i << (i % 3 == 0 ? ",north," : ",south,") << 2010 + i % 10 << "-05-01,"
          << (i % 7 == 0 ? "" : std::to_string(20000 + 313 * i)) << ',' << i % 20
          << (i % 20 > 9 ? ",yes\n" : ",no\n");
  std::ofstream("new.csv") << "visits,region,income,joined\n15,north,30000,2019-05-01\n3,south,,2012-11-01\n";
}

}  // namespace muster_pages
