import com.sun.jna.Library;
import com.sun.jna.Native;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import koel.Filter;

/** Answers the questions of check.py with the program of docs/FORMAT.md. */
public class Main {
    public interface C extends Library {
        long XXH3_64bits_withSeed(byte[] bytes, long length, long seed);
    }

    public static void main(String[] arguments) throws Exception {
        C library = Native.load("xxhash", C.class);
        Filter filter = null;
        StringBuilder answers = new StringBuilder();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String value = line.substring(line.indexOf(' ') + 1);
            Object answer;
            if (line.startsWith("open ")) {
                try {
                    byte[] bytes = Files.readAllBytes(Path.of(value));
                    filter = new Filter(bytes, (hashed, seed) -> library.XXH3_64bits_withSeed(hashed, hashed.length, seed));
                    answer = "opened";
                } catch (IllegalArgumentException error) {
                    answer = error.getMessage();
                }
            } else if (line.startsWith("item ")) {
                byte[] item = new byte[value.length() / 2];
                for (int n = 0; n < item.length; n++)
                    item[n] = (byte) Integer.parseInt(value.substring(2 * n, 2 * n + 2), 16);
                answer = filter.contains(item);
            } else {
                answer = filter.containsHash(Long.parseUnsignedLong(value));
            }
            answers.append(answer).append('\n');
        }
        System.out.print(answers);
    }
}
