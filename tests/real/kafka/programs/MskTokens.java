import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.LocalDateTime;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Accepts tokens of the form that MSK's brokers take: a request to their service, signed in its query, that has not
 * expired. Whether the signature is right only AWS can tell.
 */
public class MskTokens implements AuthenticateCallbackHandler {
    public void configure(Map configs, String mechanism, List entries) {
    }

    public void close() {
    }

    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (int i = 0; i < callbacks.length; i++) {
            if (callbacks[i] instanceof OAuthBearerValidatorCallback) {
                check((OAuthBearerValidatorCallback) callbacks[i]);
            } else if (!(callbacks[i] instanceof OAuthBearerExtensionsValidatorCallback)) {
                throw new UnsupportedCallbackException(callbacks[i]);
            }
        }
    }

    private static void check(OAuthBearerValidatorCallback callback) {
        try {
            callback.token(new Accepted(callback.tokenValue()));
        } catch (RuntimeException error) {
            callback.error("invalid_token", null, null);
        }
    }

    private static class Accepted implements OAuthBearerToken {
        private final String text;
        private final String query;
        private final long begins;

        Accepted(String text) {
            this.text = text;
            URI url = URI.create(new String(Base64.getUrlDecoder().decode(text), StandardCharsets.UTF_8));
            query = "&" + url.getRawQuery() + "&";
            if (!url.getHost().startsWith("kafka.") || !value("Action").equals("kafka-cluster%3AConnect")) {
                throw new IllegalArgumentException(url.getHost());
            }
            DateTimeFormatter form = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'");
            begins = LocalDateTime.parse(value("X-Amz-Date"), form).toInstant(ZoneOffset.UTC).toEpochMilli();
            if (value("X-Amz-Signature").length() != 64 || Instant.now().toEpochMilli() > lifetimeMs()) {
                throw new IllegalArgumentException("signature or time");
            }
        }

        private String value(String name) {
            int from = query.indexOf("&" + name + "=") + name.length() + 2;
            return query.substring(from, query.indexOf('&', from));
        }

        public String value() {
            return text;
        }

        public Set scope() {
            return Collections.emptySet();
        }

        public long lifetimeMs() {
            return begins + 1000L * Long.parseLong(value("X-Amz-Expires"));
        }

        public String principalName() {
            return value("X-Amz-Credential").split("%2F")[0];
        }

        public Long startTimeMs() {
            return Long.valueOf(begins);
        }
    }
}
