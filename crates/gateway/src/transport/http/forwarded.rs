//! Where a request comes from, also when proxies stand between.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;

use crate::config::http::ProxyRule;

/// The header in which each proxy adds the address that it was asked from at the end.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address that a request comes from: that of the peer, unless the peer is a trusted proxy. Then it is the last address
/// in `X-Forwarded-For` that is not a trusted proxy, since a trusted proxy has added it. What stands before it may come from
/// the client and is not read. If there is no such address, or something that is no address stands after it, it is the
/// peer's.
pub(super) fn sender(peer: IpAddr, headers: &HeaderMap, trusted: &[ProxyRule]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|rule| rule.trusts(address));
    if !is_trusted(peer) {
        return peer;
    }
    // Bytes, since the part that is not read may be no text.
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    let mut added = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')).map(address);
    added.find(|added| added.is_none_or(|address| !is_trusted(address))).flatten().unwrap_or(peer)
}

/// The address that a proxy has added; some add the port too.
fn address(added: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(added).ok()?.trim();
    let with_port = || text.parse::<SocketAddr>().map(|at| at.ip());
    text.parse().or_else(|_| with_port()).ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers<L: AsRef<[u8]>>(lines: &[L]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_bytes(line.as_ref()).unwrap());
        }
        headers
    }

    fn rules(texts: &[&str]) -> Vec<ProxyRule> {
        texts.iter().map(|text| ProxyRule::parse(text).unwrap()).collect()
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_sender() {
        const NEAR: &str = "10.0.0.1";
        const CLIENT: &str = "203.0.113.9";
        let trusted = rules(&["10.0.0.0/8", "192.0.2.1", "2001:db8:1::/48"]);
        let cases: [(&str, &[&[u8]], &str); 25] = [
            // Who is no proxy says nothing.
            (CLIENT, &[], CLIENT),
            (CLIENT, &[b"198.51.100.1"], CLIENT),
            ("192.0.2.2", &[b"198.51.100.1"], "192.0.2.2"),
            // One proxy, and several.
            (NEAR, &[b"203.0.113.9"], CLIENT),
            ("::ffff:10.0.0.1", &[b"203.0.113.9"], CLIENT),
            ("2001:db8:1::7", &[b"203.0.113.9"], CLIENT),
            (NEAR, &[b"203.0.113.9, 10.0.0.2"], CLIENT),
            (NEAR, &[b"203.0.113.9,192.0.2.1 ,\t10.0.0.2"], CLIENT),
            (NEAR, &[b"203.0.113.9", b"192.0.2.1", b"10.0.0.2"], CLIENT),
            // What the client has written itself is not read.
            (NEAR, &[b"198.51.100.1, 203.0.113.9"], CLIENT),
            (NEAR, &[b"10.0.0.9, 203.0.113.9, 10.0.0.2"], CLIENT),
            (NEAR, &[b"198.51.100.1", b"203.0.113.9"], CLIENT),
            (NEAR, &[b"198.51.100.1,", b" , 203.0.113.9"], CLIENT),
            (NEAR, &[b"unknown, \xff, 203.0.113.9"], CLIENT),
            // All forms of an address.
            (NEAR, &[b"203.0.113.9:4711"], CLIENT),
            (NEAR, &[b"::ffff:203.0.113.9"], CLIENT),
            (NEAR, &[b"2001:db8::9"], "2001:db8::9"),
            (NEAR, &[b"[2001:db8::9]:4711"], "2001:db8::9"),
            // Nobody is named.
            (NEAR, &[], NEAR),
            (NEAR, &[b""], NEAR),
            (NEAR, &[b"10.0.0.3, 10.0.0.2"], NEAR),
            (NEAR, &[b"203.0.113.9, unknown"], NEAR),
            (NEAR, &[b"203.0.113.9, unknown, 10.0.0.2"], NEAR),
            (NEAR, &[b"203.0.113.9,"], NEAR),
            (NEAR, &[b"203.0.113.9", b"203.0.113.\xb2"], NEAR),
        ];
        for (peer, lines, expected) in cases {
            let found = sender(peer.parse().unwrap(), &headers(lines), &trusted);
            let shown: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
            assert_eq!(found.to_string(), expected, "{peer}: {shown:?}");
        }
        let nobody = sender(NEAR.parse().unwrap(), &headers(&[CLIENT]), &[]);
        assert_eq!(nobody.to_string(), NEAR, "nobody is trusted unless it is configured");
    }

    /// What a client may write into a line.
    fn line() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[0-9:., ]{0,24}".prop_map(String::into_bytes),
            "(10\\.0\\.0\\.[0-9](, )?){0,3}".prop_map(String::into_bytes),
            any::<IpAddr>().prop_map(|address| address.to_string().into_bytes()),
            proptest::collection::vec(prop_oneof![b' '..=b'~', 0x80..=0xff_u8], 0..24),
        ]
    }

    proptest! {
        /// Proxies add the address that they were asked from, to the last line or on a line of its own.
        #[test]
        fn a_client_does_not_choose_its_address(
            client in any::<IpAddr>(),
            mut lines in proptest::collection::vec(line(), 0..4),
            proxies in proptest::collection::vec((any::<u8>(), any::<bool>()), 1..4),
        ) {
            let trusted = rules(&["10.0.0.0/24", "2001:db8:1::/48"]);
            prop_assume!(!trusted.iter().any(|rule| rule.trusts(client)));
            prop_assert_eq!(sender(client, &headers(&lines), &trusted), client);
            let mut asked_from = client;
            for (number, on_own_line) in proxies {
                match lines.last_mut() {
                    Some(last) if !on_own_line => last.extend(format!(", {asked_from}").into_bytes()),
                    _ => lines.push(asked_from.to_string().into_bytes()),
                }
                asked_from = IpAddr::from([10, 0, 0, number]);
            }
            prop_assert_eq!(sender(asked_from, &headers(&lines), &trusted), client.to_canonical());
        }
    }
}
