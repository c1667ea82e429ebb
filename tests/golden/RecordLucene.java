// Lucene, asked line by line: what tests/golden/record_lucene.py sends on standard input (fields between tabs) is
// answered on standard output, one line each.  java -cp LUCENE.jar:... RecordLucene.java

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.util.QueryBuilder;
import org.apache.lucene.util.SmallFloat;
import org.apache.lucene.util.Version;

public class RecordLucene {
    static Analyzer analyzer = new StandardAnalyzer();
    static List<String> documents = new ArrayList<>();
    static IndexSearcher searcher;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] field = line.split("\t", -1);
            switch (field[0]) {
                case "version" -> out.println(Version.LATEST);
                case "analyzer" -> analyzer = field[1].equals("english") ? new EnglishAnalyzer() : new StandardAnalyzer();
                case "tokens" -> out.println(String.join("\t", tokens(field[1])));
                case "length" -> out.println(SmallFloat.byte4ToInt(SmallFloat.intToByte4(Integer.parseInt(field[1]))));
                case "document" -> documents.add(field[1]);
                case "index" -> index(new BM25Similarity(Float.parseFloat(field[1]), Float.parseFloat(field[2])));
                case "search" -> out.println(search(field[3], Float.parseFloat(field[1]), Integer.parseInt(field[2])));
                default -> throw new IllegalArgumentException(line);
            }
        }
        out.flush();
    }

    static List<String> tokens(String text) throws Exception {
        List<String> tokens = new ArrayList<>();
        try (TokenStream stream = analyzer.tokenStream("text", text)) {
            CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
            for (stream.reset(); stream.incrementToken(); ) tokens.add(term.toString());
            stream.end();
        }
        return tokens;
    }

    static void index(BM25Similarity similarity) throws Exception {
        ByteBuffersDirectory directory = new ByteBuffersDirectory();
        IndexWriterConfig config = new IndexWriterConfig(analyzer).setSimilarity(similarity);
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (String text : documents) {
                Document document = new Document();
                document.add(new TextField("text", text, Field.Store.NO));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
        }
        searcher = new IndexSearcher(DirectoryReader.open(directory));
        searcher.setSimilarity(similarity);
    }

    // What Elasticsearch's match query becomes, an OR of the text's tokens: numbers of documents and their scores.
    static String search(String text, float boost, int n) throws Exception {
        Query query = new QueryBuilder(analyzer).createBooleanQuery("text", text);
        List<String> hits = new ArrayList<>();
        if (query != null) {
            for (ScoreDoc hit : searcher.search(new BoostQuery(query, boost), n).scoreDocs) {
                hits.add(hit.doc + "\t" + hit.score);
            }
        }
        return String.join("\t", hits);
    }
}
