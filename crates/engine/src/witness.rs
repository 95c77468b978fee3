pub fn run(_c: serde_json::Value) -> crate::error::Result<()> {
    unimplemented!()
}
